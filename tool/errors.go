package tool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ronda-go/ronda/loop"
)

// Errorf makes an error of a class. A wrapped error (%w) stays reachable.
func Errorf(class loop.Class, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Class: class, Message: err.Error(), NotRun: class == loop.ClassTransient, Err: err}
}

// Invalid says that the model can mend the call: err names the argument and what is wrong. Like the other functions that
// give an error a class it returns nil for nil.
func Invalid(err error) error { return withClass(loop.ClassInvalid, err) }

// Denied says that the other side refuses the call, whatever its arguments.
func Denied(err error) error { return withClass(loop.ClassDenied, err) }

// Fatal says that the run cannot go on: it stops as failed.
func Fatal(err error) error { return withClass(loop.ClassFatal, err) }

// Unknown says that the effect may have happened.
func Unknown(err error) error { return withClass(loop.ClassUnknown, err) }

// Transient says that nothing happened and that another attempt is worth while, not before the given time has passed (0:
// when the loop likes).
func Transient(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &Error{Class: loop.ClassTransient, Message: err.Error(), RetryAfter: max(after, 0), NotRun: true, Err: err}
}

func withClass(class loop.Class, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Class: class, Message: err.Error(), Err: err}
}

// AsError gives any error of Run its class: that of an *Error anywhere in its tree; unknown where a context or a time-out
// ended the work; else error. The message is that of the whole err. The result is the caller's. Nil stays nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) && e != nil {
		out := *e
		if out.Class == "" {
			out.Class = loop.ClassError
		}
		out.Message = err.Error()
		return &out
	}
	class := loop.ClassError
	var timeout interface{ Timeout() bool }
	if errors.Is(err, context.Canceled) || errors.As(err, &timeout) && timeout.Timeout() {
		class = loop.ClassUnknown
	}
	return &Error{Class: class, Message: err.Error(), Err: err}
}
