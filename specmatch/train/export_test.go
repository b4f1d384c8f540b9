package train

// Bucket is bucket.
var Bucket = bucket
