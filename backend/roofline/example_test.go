package roofline_test

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/roofline"
)

// What keeps a step of training from being faster: ten steps that took 0.9 ms each, on a
// device with a terabyte and ten teraflops a second whose launches cost 3 µs.
func ExampleRates_Floor() {
	rates := roofline.Rates{Bytes: 1e9, Flops: 1e10, Launch: 0.003, Replayed: 0.001}
	work := backend.Work{Launches: 2000, Bytes: 2e9, Flops: 5e9}
	f := rates.Floor(work, 10, false, 0.9)
	fmt.Printf("bytes %.2f, products %.2f, launches %.2f ms: %s bind, %.0f %% of the time\n",
		f.BytesMS, f.ProductsMS, f.LaunchesMS, f.Binds, 100*f.Share)
	// Output: bytes 0.20, products 0.05, launches 0.60 ms: launches bind, 67 % of the time
}
