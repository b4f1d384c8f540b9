package backend

import "errors"

// Recover stores the [Error] that a failed device panicked with in *err. Use it as
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
