package backend

// Meter is an engine that counts what it hands to its device: so much the device
// cannot do faster than its rates of copies, products and launches allow.
type Meter interface{ Work() Work }

// Work is an amount of work. What moves between host and device is not in it.
type Work struct {
	Launches int   // of kernels and of products
	Bytes    int64 // of the operands of every launch, each read or written once
	Flops    int64 // of products of matrices, those within kernels included
}

// Add adds n times other.
func (w *Work) Add(n int, other Work) {
	w.Launches += n * other.Launches
	w.Bytes += int64(n) * other.Bytes
	w.Flops += int64(n) * other.Flops
}
