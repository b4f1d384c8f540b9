// Package play is what the playground's page asks the engine for: a tape to step
// through, views of a graph, and training step by step. It knows nothing of browsers: a
// [Session] takes and returns JSON, and is tested on the desktop. The program that is
// compiled to WebAssembly (../worker) only hands the messages over.
package play

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Session answers a page's questions, one after another.
type Session struct {
	training  *Training
	baselines map[start]Baselines // what was measured, by how a training starts
}

// start is what the initial weights and the first epoch of views depend on.
type start struct {
	seed  int
	batch int
}

// Call answers one question, in JSON: {"value": …} or {"error": …}, an [Error] whose
// line is 0 if it is about no place of an expression. It never panics.
func (s *Session) Call(method, request string) (response string) {
	answer := func(v any, err error) string {
		var reply struct {
			Value any    `json:"value,omitempty"`
			Error *Error `json:"error,omitempty"`
		}
		switch {
		case err == nil:
			reply.Value = v
		case !errors.As(err, &reply.Error):
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
	"examples": func(*Session, []byte) (any, error) {
		return map[string]any{"examples": Examples}, nil
	},
	"trace": with(func(_ *Session, q Tape) (any, error) { return q.Trace() }),
	"draw":  with(func(_ *Session, p Picture) (any, error) { return p.Draw() }),
	"start": with((*Session).start),
	"set": training(func(t *Training, q Settings) (any, error) {
		return nil, t.Set(q)
	}),
	"step": training(func(t *Training, _ struct{}) (any, error) { return t.Step() }),
	"results": training(func(t *Training, _ struct{}) (any, error) {
		return t.results()
	}),
}

// training is [with] for a training that has been started.
func training[Q any](f func(t *Training, q Q) (any, error)) func(*Session, []byte) (any, error) {
	return with(func(s *Session, q Q) (any, error) {
		if s.training == nil {
			return nil, errors.New("there is no training yet")
		}
		return f(s.training, q)
	})
}

// start begins a training, in place of the one before.
func (s *Session) start(q Settings) (any, error) {
	t, err := NewTraining(q)
	if err != nil {
		return nil, err
	}
	if s.training != nil {
		s.training.Close()
	}
	s.training = t
	key := start{q.Seed, q.Batch}
	if b, ok := s.baselines[key]; ok {
		t.basis = b.basis
		return b, nil
	}
	b, err := t.Baselines()
	if err != nil {
		return nil, err
	}
	if s.baselines == nil {
		s.baselines = make(map[start]Baselines)
	}
	s.baselines[key] = b
	return b, nil
}

func (t *Training) results() (any, error) {
	csv, err := t.CSV()
	if err != nil {
		return nil, err
	}
	model, err := t.Model()
	command, same := t.Command()
	return map[string]any{
		"csv":     csv,
		"model":   model,
		"command": command,
		"same":    same,
	}, err
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
