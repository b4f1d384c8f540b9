package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor/files"
)

// builtin is the value of -model that stands for the encoder in this program.
const builtin = "pretrained"

// modelOnEngine is a model that was read from a file onto an engine of its own.
type modelOnEngine struct {
	*model.Trained
	sum string // SHA-256 of the file, in hexadecimal digits
	be  backend.Backend
}

// openModel reads a model file, in one pass, or the built-in encoder. The caller closes the model.
func openModel(path string, e cli.Engine) (*modelOnEngine, error) {
	return openModelOn(path, e.Open)
}

// openModelOn is [openModel] with a function that opens the engine.
func openModelOn(path string, open func() (backend.Backend, error)) (*modelOnEngine, error) {
	var source io.Reader = bytes.NewReader(pretrained.Model)
	if path != builtin {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		source = file
	}
	be, err := open()
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	m, err := model.Read(io.TeeReader(source, hash), be)
	if err == nil {
		_, err = io.Copy(hash, source)
	}
	if err == nil && path == builtin {
		m, err = m.WithReadout(gnn.ReadoutAll)
	}
	if err != nil {
		be.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &modelOnEngine{Trained: m, sum: fmt.Sprintf("%x", hash.Sum(nil)), be: be}, nil
}

// Close frees the engine, and with it the model.
func (m *modelOnEngine) Close() { m.be.Close() }

func setupInspect(f *cli.FlagSet) cli.Action {
	path := builtin
	cli.Var(f, &path, "model", setting.Text,
		"model `file` to describe; pretrained is the built-in encoder for molecules")
	return func(_ context.Context, stdout, _ io.Writer) error {
		m, err := openModel(path, cli.Engine{Backend: "cpu"})
		if err != nil {
			return err
		}
		defer m.Close()
		_, err = fmt.Fprintf(stdout, "%-11s %s\n%-11s %s\n%s",
			"file", files.Printable(path), "sha256", m.sum, apply.Describe(m.Card))
		return err
	}
}
