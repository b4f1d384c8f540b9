// Package laboratory is what the laboratory's page asks the engine for: predictions for a file of molecules, part by
// part, with drawings and explanations; searches, clusters, picks and maps of the file; and a model of one of its
// columns. It knows nothing of browsers: a [Session] takes and returns JSON, and is tested on the desktop. The program
// that is compiled to WebAssembly (worker) only hands the messages over.
//
// The mental model: the page has several workers, each with a Session. One of them, the desk, opens the file and
// divides it into parts, each a small file with the header of the whole. The others predict for the parts, in any
// order, and their rows have the numbers and lines of the whole file. The desk also answers what needs all molecules.
package laboratory

import (
	"encoding/json"
	"fmt"
)

// Session answers a page's questions, one after another.
type Session struct {
	// Progress, if set, is called while a question is being answered, with the share that is done.
	Progress func(share float64)

	file   *file
	models map[string]*predictor
}

// Call answers one question in JSON, which may come with the bytes of a file: {"value": …} or {"error": "…"}. It never
// panics.
func (s *Session) Call(method, request string, data []byte) (response string) {
	answer := func(v any, err error) string {
		var reply struct {
			Value any    `json:"value,omitempty"`
			Error string `json:"error,omitempty"`
		}
		reply.Value = v
		if err != nil {
			reply.Value = nil
			reply.Error = err.Error()
		}
		text, err := json.Marshal(reply)
		if err != nil {
			return fmt.Sprintf(`{"error":%q}`, err.Error())
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
	return answer(f(s, []byte(request), data))
}

// methods are the questions.
var methods map[string]func(s *Session, request, data []byte) (any, error)

func init() {
	methods = map[string]func(s *Session, request, data []byte) (any, error){
		"open":    with((*Session).open),
		"load":    with((*Session).load),
		"predict": with((*Session).predict),
		"explain": with((*Session).explain),
		"nearest": with((*Session).nearest),
		"search":  with((*Session).search),
		"cluster": with((*Session).cluster),
		"pick":    with((*Session).pick),
		"map":     with((*Session).project),
		"fit":     with((*Session).fit),
		"page":    with((*Session).page),
	}
}

// with decodes a question.
func with[Q any](f func(s *Session, q Q, data []byte) (any, error)) func(*Session, []byte, []byte) (any, error) {
	return func(s *Session, request, data []byte) (any, error) {
		var q Q
		if err := json.Unmarshal(request, &q); err != nil {
			return nil, err
		}
		return f(s, q, data)
	}
}

// report calls Progress.
func (s *Session) report(done, total int) {
	if s.Progress != nil && total > 0 {
		s.Progress(float64(done) / float64(total))
	}
}
