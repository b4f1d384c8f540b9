class InputTags:
    string: bool
    one_d_array: bool
    two_d_array: bool
    allow_nan: bool

class Tags:
    requires_fit: bool
    input_tags: InputTags
