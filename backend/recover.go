package backend

import "errors"

// Recover turns the panic of a device that failed, an [Error], into *err, for use as
//
//	defer backend.Recover(&err)
//
// Other panics continue.
func Recover(err *error) {
	r := recover()
	if r == nil {
		return
	}
	var device *Error
	if e, ok := r.(error); ok && errors.As(e, &device) {
		*err = device
		return
	}
	panic(r)
}
