package play

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Session answers a page's questions, one after another.
type Session struct{}

// Call answers one question, in JSON: {"value": …} or {"error": …}, an [Error] whose
// line is 0 if it is about no place of an expression. It never panics.
func (s *Session) Call(method, request string) (response string) {
	answer := func(v any, err error) string {
		var reply struct {
			Value any    `json:"value,omitempty"`
			Error *Error `json:"error,omitempty"`
		}
		if reply.Value = v; err != nil && !errors.As(err, &reply.Error) {
			reply.Error = &Error{Message: err.Error()}
		}
		text, err := json.Marshal(reply)
		if err != nil {
			return fmt.Sprintf(`{"error":{"message":%q}}`, err.Error())
		}
		return string(text)
	}
	defer func() {
		if r := recover(); r != nil {
			response = answer(nil, fmt.Errorf("%s: %v", method, r))
		}
	}()
	f, ok := methods[method]
	if !ok {
		return answer(nil, fmt.Errorf("there is no %q", method))
	}
	return answer(f(s, []byte(request)))
}

var methods = map[string]func(s *Session, request []byte) (any, error){
	"examples": func(*Session, []byte) (any, error) { return Examples, nil },
	"trace":    with(func(_ *Session, q Tape) (any, error) { return q.Trace() }),
}

// with reads the request of a method.
func with[Q any](f func(s *Session, q Q) (any, error)) func(*Session, []byte) (any, error) {
	return func(s *Session, request []byte) (any, error) {
		var q Q
		if err := json.Unmarshal(request, &q); err != nil {
			return nil, err
		}
		return f(s, q)
	}
}
