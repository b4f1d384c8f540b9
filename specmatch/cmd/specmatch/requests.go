package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/specmatch/apply"
)

// The values of -out-format.
const (
	formatCSV      = "csv"
	formatNPY      = "npy"
	formatRequests = "requests"
)

// maxRequest bounds the bytes of a request, which is in memory as a whole.
const maxRequest = 1 << 28

// A response is the line before the matrices that answer a request.
type response struct {
	Bytes    int    `json:"bytes"`              // of the matrices, which follow
	Messages string `json:"messages,omitempty"` // what one run of the command would print
	Error    string `json:"error,omitempty"`
}

// answer applies a job to one request after another, so that another program opens the models only once.
// A request is a line with a number of bytes, and then the text of a whole file. It ends with standard input.
func (o *output) answer(ctx context.Context, job apply.Job, stdout io.Writer) error {
	job.Progress = nil
	job.Written = nil
	requests := bufio.NewReader(os.Stdin)
	for ctx.Err() == nil {
		line, err := requests.ReadString('\n')
		if err == io.EOF && line == "" {
			return nil
		}
		size, sizeErr := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || sizeErr != nil || size < 0 || size > maxRequest {
			return fmt.Errorf("standard input: %q: want a line with the bytes of a request, at most %d",
				line, maxRequest)
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(requests, text); err != nil {
			return fmt.Errorf("standard input: a request of %d bytes: %w", size, err)
		}
		if err := o.answerOne(ctx, job, text, stdout); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// answerOne writes the response to a request.
func (o *output) answerOne(ctx context.Context, job apply.Job, text []byte, stdout io.Writer) error {
	job.Records.Input = bytes.NewReader(text)
	var matrices, messages bytes.Buffer
	_, err := job.WriteNPY(ctx, &matrices, &messages)
	o.describe(job.Model.Trained, &messages)
	answer := response{Bytes: matrices.Len(), Messages: messages.String()}
	if err != nil {
		answer.Error = err.Error()
	}
	head, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, errHead := stdout.Write(append(head, '\n'))
	_, errBody := stdout.Write(matrices.Bytes())
	return errors.Join(errHead, errBody)
}
