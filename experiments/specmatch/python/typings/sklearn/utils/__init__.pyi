class InputTags:
    string: bool
    one_d_array: bool
    two_d_array: bool
    allow_nan: bool

class TransformerTags: ...

class Tags:
    requires_fit: bool
    transformer_tags: TransformerTags | None
    input_tags: InputTags
