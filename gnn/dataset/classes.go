package dataset

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Classes returns the distinct texts but for empty ones, sorted: numbers by value and
// before other texts.
func Classes(texts []string) (classes []string) {
	for _, v := range texts {
		if v = strings.TrimSpace(v); v != "" {
			classes = append(classes, v)
		}
	}
	slices.SortFunc(classes, func(a, b string) int {
		p, errP := strconv.ParseFloat(a, 64)
		q, errQ := strconv.ParseFloat(b, 64)
		switch {
		case errP == nil && errQ == nil:
			return cmp.Or(cmp.Compare(p, q), strings.Compare(a, b))
		case errP == nil:
			return -1
		case errQ == nil:
			return 1
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(classes)
}

// openRecords reads a file of graphs with a class each as a data set of that name.
func openRecords(ctx context.Context, dir, name string, opts Options) (*Dataset, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	t, err := ReadTable(ctx, path, RecordOptions{Input: io.TeeReader(f, sum), Want: GraphContent, Fields: []string{"class"}})
	if err != nil {
		return nil, err
	}
	if n := len(t.Rejected); n > 0 {
		return nil, fmt.Errorf("dataset: %d of %d graphs cannot be used, such as %w", n, n+len(t.Records), t.Rejected[0])
	}
	var texts []string
	for _, r := range t.Records {
		text := strings.TrimSpace(r.Fields[0])
		if text == "" {
			return nil, &SyntaxError{File: path, Line: r.Line, Reason: "the graph has no class"}
		}
		texts = append(texts, text)
	}
	classes := Classes(texts)
	if len(classes) < 2 || len(classes) > len(texts)/2 {
		return nil, fmt.Errorf("dataset: %s: %d different values of class on %d graphs, such as %q, cannot be classes", path, len(classes), len(texts), classes[:min(3, len(classes))])
	}
	ds := t.Set
	ds.Name, ds.Classes, ds.ClassValues = name, len(classes), nil
	for c, text := range classes {
		value, err := strconv.Atoi(text)
		if err != nil {
			value = c
		}
		ds.ClassValues = append(ds.ClassValues, value)
	}
	for i, g := range ds.Graphs {
		g.Class = slices.Index(classes, texts[i])
	}
	if opts.Sum != nil {
		if _, err := io.Copy(sum, f); err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		opts.Sum(name, hex.EncodeToString(sum.Sum(nil)))
	}
	return ds, nil
}
