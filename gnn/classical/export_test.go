package classical

// For tests that evaluate, by a package that imports this one.
var (
	Learning  = learning
	Documents = documents
)
