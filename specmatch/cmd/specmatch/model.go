package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/specmatch/pretrained/admet"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor/files"
)

// builtin is the value of -model that stands for the encoder in this program; with a colon and a name behind it, it
// stands for one of several.
const builtin = "pretrained"

// builtinEncoder returns the encoder of this program that a value of -model stands for; ok is false for other models.
func builtinEncoder(path string) (e pretrained.Encoder, ok bool, err error) {
	kind, name, named := strings.Cut(path, ":")
	if kind != builtin || named && name == "" {
		return e, false, nil
	}
	e, err = pretrained.Find(name)
	return e, true, err
}

// predictors is the value of -model that stands for all predictors in this program; with a colon and the name of an
// endpoint behind it, it stands for one.
const predictors = "admet"

// shipped returns the name of the endpoint of a value of -model; ok is false for other models.
func shipped(path string) (endpoint string, ok bool) { return strings.CutPrefix(path, predictors+":") }

// modelOnEngine is a model that was read from a file onto an engine of its own.
type modelOnEngine struct {
	*model.Trained
	sum string // SHA-256 of the file, in hexadecimal digits
	be  backend.Backend

	shared bool // the engine is that of another model, which closes it
}

// openModel reads a model file, in one pass, or the built-in encoder. The caller closes the model.
func openModel(path string, e cli.Engine) (*modelOnEngine, error) {
	return openModelOn(path, e.Open)
}

// openModelOn is [openModel] with a function that opens the engine.
func openModelOn(path string, open func() (backend.Backend, error)) (*modelOnEngine, error) {
	encoder, isBuiltin, err := builtinEncoder(path)
	if err != nil {
		return nil, cli.Usagef("-model %s: %w", path, err)
	}
	source := bufio.NewReader(bytes.NewReader(encoder.File))
	if endpoint, ok := shipped(path); ok {
		text, err := admet.Model(endpoint)
		if err != nil {
			return nil, cli.Usagef("-model %s: %w", path, err)
		}
		source.Reset(bytes.NewReader(text))
	} else if text, ok, err := memberFile(path); ok {
		if err != nil {
			return nil, err
		}
		source.Reset(bytes.NewReader(text))
	} else if !isBuiltin {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		source.Reset(file)
		if err := checkKind(path, source); err != nil {
			return nil, err
		}
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
	if err == nil && isBuiltin {
		m, err = m.WithReadout(gnn.ReadoutAll)
	}
	if err != nil {
		be.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &modelOnEngine{Trained: m, sum: fmt.Sprintf("%x", hash.Sum(nil)), be: be}, nil
}

// checkKind returns an error that names what a file is, if it begins as a file of another kind does.
func checkKind(path string, source *bufio.Reader) error {
	head, _ := source.Peek(16) // a shorter file has fewer bytes
	const want = "want a model file, such as RUN/model.safetensors of train or finetune"
	for _, kind := range []struct{ magic, is string }{
		{"\x93NUMPY", "is a .npy matrix"},
		{"PAR1", "is a Parquet table"},
		{"\x1f\x8b", "is packed by gzip"},
		{"PK\x03\x04", "is a zip archive, such as torch.save writes; specmatch convert -in " + path +
			" makes a model file of weights"},
	} {
		if bytes.HasPrefix(head, []byte(kind.magic)) {
			return fmt.Errorf("%s: %s; %s", path, kind.is, want)
		}
	}
	// The length of a header, with which a model file begins, has bytes of 0.
	isBinary := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r) }
	if len(head) > 8 && !bytes.ContainsFunc(head[:8], isBinary) && utf8.Valid(head[:8]) {
		return fmt.Errorf("%s: is a text; %s", path, want)
	}
	return nil
}

// Close frees the engine, and with it the model.
func (m *modelOnEngine) Close() {
	if !m.shared {
		m.be.Close()
	}
}

// memberFile returns the model file that a path names within an ensemble file, as in a directory; ok is false for
// other paths.
func memberFile(path string) (text []byte, ok bool, err error) {
	ensemble, name := filepath.Split(path)
	ensemble = filepath.Clean(ensemble)
	info, err := os.Stat(ensemble)
	if err != nil || !info.Mode().IsRegular() {
		return nil, false, nil
	}
	text, err = model.ReadMember(ensemble, name)
	return text, !errors.Is(err, model.ErrNoEnsemble), err
}

// modelFiles returns the model files that the values of -model name: a run directory stands for all
// models in it, and so does an ensemble file, in which they are named as in a directory.
func modelFiles(paths ...string) (files []string, err error) {
	for _, path := range paths {
		if path == predictors {
			for _, name := range admet.Names() {
				files = append(files, predictors+":"+name)
			}
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			files = append(files, path)
			continue
		}
		if !info.IsDir() {
			names, err := model.EnsembleNames(path)
			switch {
			case errors.Is(err, model.ErrNoEnsemble):
				files = append(files, path)
			case err != nil:
				return nil, err
			}
			for _, name := range names {
				files = append(files, filepath.Join(path, name))
			}
			continue
		}
		found := modelsIn(path)
		if len(found) == 0 {
			return nil, cli.Usagef("-model %s: this directory has no model*.safetensors; want a model file or the "+
				"directory of a run of train or finetune", path)
		}
		files = append(files, found...)
	}
	return files, nil
}

// modelsIn returns the model files of a run directory.
func modelsIn(dir string) []string {
	// the pattern is well formed
	found, _ := filepath.Glob(filepath.Join(files.Pattern(dir), "model*.safetensors"))
	return found
}

// filesOfModels returns the files that are read for values of -model. Of a run directory, these are its models, and not
// what earlier commands wrote next to them, such as predictions.
func filesOfModels(paths ...string) (read []string) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			read = append(read, modelsIn(path)...)
			continue
		}
		read = append(read, path)
	}
	return read
}

// oneModelFile is [modelFiles] for a command that takes one model.
func oneModelFile(path string) (string, error) {
	files, err := modelFiles(path)
	if err == nil && path == predictors {
		err = cli.Usagef("-model %s: has %d endpoints; name one, such as %s", path, len(files), files[0])
	}
	if err == nil && len(files) > 1 {
		kind := "directory"
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			kind = "ensemble"
		}
		err = cli.Usagef("-model %s: this %s has %d models; name one, such as %s",
			path, kind, len(files), files[0])
	}
	if err != nil {
		return "", err
	}
	return files[0], nil
}

func setupInspect(f *cli.FlagSet) cli.Action {
	path := builtin
	cli.Var(f, &path, "model", setting.Text,
		"model `file` to describe; pretrained is the built-in encoder for molecules, pretrained:zinc is another\n"+
			"one, and admet lists the built-in predictors, such as admet:herg")
	f.Arguments("model")
	return func(_ context.Context, stdout, _ io.Writer) error {
		if path == predictors {
			return listPredictors(stdout)
		}
		path, err := oneModelFile(path)
		if err != nil {
			return err
		}
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

// listPredictors prints a line for each built-in predictor.
func listPredictors(w io.Writer) error {
	var err error
	for _, e := range admet.Endpoints() {
		if err == nil {
			_, err = fmt.Fprintf(w, "%-27s %s: %s; %d records, %s %.3g ± %.2g by scaffold\n",
				predictors+":"+e.Name, e.Title, e.Unit, e.Records, e.Metric, e.Score, e.Std)
		}
	}
	return err
}
