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

// Error is the value of the panic for a failure of the device at run time,
// such as memory running out. [Recover] turns it into an error.
type Error struct {
	Backend string // the engine's name
	Op      string // what it was doing
	Err     error  // the cause
}

// Error returns the engine, the operation and the cause.
func (e *Error) Error() string {
	return "backend " + e.Backend + ": " + e.Op + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error {
	return e.Err
}
