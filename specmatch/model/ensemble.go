package model

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor/files"
)

// Member is a model of an ensemble, as the bytes of its model file.
type Member struct {
	Name string // of the file, such as model-0.safetensors
	File []byte
}

// An ensemble file is a zip archive of model files, so that unpacking it gives a directory of models. The manifest
// comes first. It has the version of the format and, for each model in their order, its name and the SHA-256 of its
// file. The archive has no other files, and its times are empty: equal models give equal bytes.
const (
	manifestName   = "ensemble.json"
	ensembleFormat = 1
	maxMembers     = 1 << 12
	// maxRatio bounds how well a model file may be packed, and so the memory for an archive.
	maxRatio = 256
)

// manifest is the content of the file of that name.
type manifest struct {
	Format int           `json:"specmatch_ensemble"`
	Models []memberEntry `json:"models"`
}

type memberEntry struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // in hexadecimal digits
}

// ErrNoEnsemble is the error that a file is no ensemble. It may be a model file.
var ErrNoEnsemble = errors.New("the file is no ensemble of models")

// WriteEnsemble writes model files as one file.
func WriteEnsemble(w io.Writer, members ...Member) error {
	if len(members) == 0 || len(members) > maxMembers {
		return fmt.Errorf("specmatch: an ensemble of %d models; want 1 to %d", len(members), maxMembers)
	}
	list := manifest{Format: ensembleFormat}
	taken := map[string]bool{manifestName: true}
	for _, m := range members {
		if taken[m.Name] || m.Name == "" || m.Name == "." || m.Name == ".." || m.Name != filepath.Base(m.Name) {
			return fmt.Errorf("specmatch: a model of an ensemble cannot have the name %q, or it is there twice", m.Name)
		}
		taken[m.Name] = true
		list.Models = append(list.Models, memberEntry{
			Name:   m.Name,
			SHA256: sumOf(m.File),
		})
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	archive := zip.NewWriter(w)
	contents := append([]Member{{Name: manifestName, File: append(text, '\n')}}, members...)
	for _, m := range contents {
		file, err := archive.CreateHeader(&zip.FileHeader{
			Name:   m.Name,
			Method: packing(m.File),
		})
		if err != nil {
			return err
		}
		if _, err := file.Write(m.File); err != nil {
			return err
		}
	}
	return archive.Close()
}

// packing returns how a file is packed: not at all if it would be packed better than what is read.
func packing(file []byte) uint16 {
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.DefaultCompression) // the level is a valid one
	w.Write(file)                                              // into memory
	w.Close()
	if len(file) > maxRatio*packed.Len() {
		return zip.Store
	}
	return zip.Deflate
}

// SaveEnsemble writes models to one file, which appears whole or not at all. They are called model-0.safetensors and
// so on. [Trained.Save] says what else changes.
func SaveEnsemble(path string, models ...*Trained) error {
	var members []Member
	for i, m := range models {
		var file bytes.Buffer
		if err := m.Write(&file); err != nil {
			return fmt.Errorf("specmatch: save %s: model %d: %w", path, i, err)
		}
		members = append(members, Member{
			Name: fmt.Sprintf("model-%d.safetensors", i),
			File: file.Bytes(),
		})
	}
	return files.Write(path, func(w io.Writer) error {
		return WriteEnsemble(w, members...)
	})
}

// OpenEnsemble reads the models of an ensemble file, or the one of a model file, onto an engine. See [Open].
func OpenEnsemble(path string, be backend.Backend) (models []*Trained, err error) {
	members, err := ReadEnsemble(path)
	if errors.Is(err, ErrNoEnsemble) {
		m, err := Open(path, be)
		if err != nil {
			return nil, err
		}
		return []*Trained{m}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, member := range members {
		m, err := Read(bytes.NewReader(member.File), be)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, member.Name, err)
		}
		models = append(models, m)
	}
	return models, nil
}

// ReadEnsemble returns the model files of an ensemble file, in their order, and verifies their sums. The error for a
// file that is no ensemble is [ErrNoEnsemble]. It is another error if an ensemble is damaged, truncated or of a
// later version.
func ReadEnsemble(path string) ([]Member, error) {
	r, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	members, err := r.members()
	if err != nil {
		return nil, fmt.Errorf("specmatch: open %s: %w", path, err)
	}
	return members, nil
}

// UnpackEnsemble is [ReadEnsemble] of a file's contents.
func UnpackEnsemble(file []byte) ([]Member, error) {
	r, err := readArchive(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	return r.members()
}

// EnsembleNames returns the names of the models of an ensemble file, in their order. Errors are those of
// [ReadEnsemble], but the models are not read.
func EnsembleNames(path string) (names []string, err error) {
	r, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for _, entry := range r.models {
		names = append(names, entry.Name)
	}
	return names, nil
}

// ReadMember returns a model file of an ensemble file, and verifies its sum.
func ReadMember(path, name string) ([]byte, error) {
	r, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for _, entry := range r.models {
		if entry.Name == name {
			m, err := r.member(entry)
			if err != nil {
				err = fmt.Errorf("specmatch: open %s: %w", path, err)
			}
			return m.File, err
		}
	}
	return nil, fmt.Errorf("specmatch: %s has no model %q", path, name)
}

// archive is an ensemble file.
type archive struct {
	*zip.Reader
	file   *os.File      // nil for contents in memory
	models []memberEntry // that the manifest lists
}

// openArchive opens an ensemble file and reads its manifest.
func openArchive(path string) (*archive, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	var r *archive
	if err == nil {
		r, err = readArchive(file, info.Size())
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("specmatch: open %s: %w", path, err)
	}
	r.file = file
	return r, nil
}

// readArchive reads the directory and the manifest of an ensemble file. A file that begins as an ensemble does is one,
// although its end may be missing.
func readArchive(file io.ReaderAt, size int64) (*archive, error) {
	const nameOffset = 30 // of the first file's name
	head := make([]byte, nameOffset+len(manifestName))
	_, err := file.ReadAt(head, 0)
	if err != nil || string(head[:4]) != "PK\x03\x04" || string(head[nameOffset:]) != manifestName {
		return nil, ErrNoEnsemble
	}
	r := new(archive)
	r.Reader, err = zip.NewReader(file, size)
	if err != nil {
		return nil, fmt.Errorf("the ensemble is damaged or truncated: %w", err)
	}
	r.models, err = r.manifest()
	return r, err
}

// Close closes the file.
func (r *archive) Close() { r.file.Close() }

// read returns a file of the archive.
func (r *archive) read(index int, name string) ([]byte, error) {
	entry := r.File[index]
	if entry.Name != name {
		return nil, fmt.Errorf("the ensemble has the file %q in place of %q", entry.Name, name)
	}
	if entry.UncompressedSize64 > maxRatio*entry.CompressedSize64+1<<16 {
		return nil, fmt.Errorf("%s: %d bytes from %d", name, entry.UncompressedSize64, entry.CompressedSize64)
	}
	content, err := entry.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	return text, nil
}

// manifest returns the models that the archive lists, which are all its files.
func (r *archive) manifest() ([]memberEntry, error) {
	if len(r.File) == 0 {
		return nil, errors.New("the ensemble has no files")
	}
	text, err := r.read(0, manifestName)
	if err != nil {
		return nil, err
	}
	var list manifest
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	if list.Format != ensembleFormat {
		return nil, fmt.Errorf("an ensemble of format %d; this version reads format %d", list.Format, ensembleFormat)
	}
	if len(list.Models) == 0 || len(list.Models) != len(r.File)-1 {
		return nil, fmt.Errorf("the ensemble lists %d models and has %d", len(list.Models), len(r.File)-1)
	}
	for i, entry := range list.Models {
		if r.File[i+1].Name != entry.Name {
			return nil, fmt.Errorf("the ensemble has the file %q in place of %q", r.File[i+1].Name, entry.Name)
		}
	}
	return list.Models, nil
}

// members returns the model files that the manifest lists.
func (r *archive) members() (members []Member, err error) {
	for _, entry := range r.models {
		m, err := r.member(entry)
		if err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

// member returns a model file that the manifest lists.
func (r *archive) member(entry memberEntry) (Member, error) {
	m := Member{Name: entry.Name}
	for i, file := range r.File {
		if i == 0 || file.Name != entry.Name {
			continue
		}
		var err error
		m.File, err = r.read(i, entry.Name)
		if err != nil {
			return m, err
		}
		break
	}
	if sumOf(m.File) != entry.SHA256 {
		return m, fmt.Errorf("%s is damaged: its SHA-256 differs from that in %s", entry.Name, manifestName)
	}
	return m, nil
}

// sumOf returns the SHA-256 of a file in hexadecimal digits.
func sumOf(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}
