package apply

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/specmatch/specmatch/specmatch/shard"
	"github.com/specmatch/specmatch/tensor/files"
)

// index is the ending of a shard's list of batches: a line has the bytes of each file.
const index = ".index"

// shardPath returns where a share of an output is written.
func shardPath(s shard.Shard, out string) string {
	if s.N == 0 {
		return out
	}
	return fmt.Sprintf("%s.shard-%d-of-%d", out, s.I, s.N)
}

// indexLine is the line of a batch.
func indexLine(texts [][]byte) []byte {
	var b bytes.Buffer
	for _, text := range texts {
		fmt.Fprintf(&b, "%d ", len(text))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// finishShard gives the files of a shard their names, and leaves the journal, which says so.
func (p *parts) finishShard() error {
	if err := p.save(); err != nil { // a shard without a batch has no sizes
		return err
	}
	for i, f := range p.files {
		if err := errors.Join(f.Close(), os.Rename(p.names[i]+partial, p.names[i])); err != nil {
			return err
		}
	}
	p.files = nil
	p.at.Done = true
	var err error
	p.at.Sum, err = p.at.sum()
	if err != nil {
		return err
	}
	return files.Write(p.journal, func(f io.Writer) error {
		return json.NewEncoder(f).Encode(p.at)
	})
}

// shardsOf returns the journals of an output's shards, which have to be of one number of
// them, with nil for those that are missing, damaged or not finished.
func shardsOf(form format, out string) (all []*state, err error) {
	found, err := filepath.Glob(escape(out) + ".shard-*" + journal)
	if err != nil {
		return nil, err
	}
	for _, path := range found {
		var s shard.Shard
		name := strings.TrimPrefix(path, out)
		if _, err := fmt.Sscanf(name, ".shard-%d-of-%d.journal", &s.I, &s.N); err != nil ||
			shardPath(s, "")+journal != name || s.I < 0 || s.I >= s.N {
			continue
		}
		if all == nil {
			all = make([]*state, s.N)
		}
		if len(all) != s.N {
			return nil, fmt.Errorf(
				"apply: %s: there are shards of %d and of %d; remove those that are not meant",
				out, len(all), s.N,
			)
		}
		p := parts{names: append(partsOf(form, shardPath(s, out)), shardPath(s, out)+index), journal: path}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var at state
		if json.Unmarshal(data, &at) != nil || !at.Done {
			continue
		}
		p.at.Key = at.Key
		if err := p.resume(); err != nil {
			return nil, err
		}
		if p.at.Done {
			all[s.I] = &p.at
		}
	}
	if all == nil {
		return nil, fmt.Errorf("apply: there are no shards of %s", out)
	}
	return all, nil
}

// escape returns a pattern that a path alone matches.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// Collect joins the shards of an output, which [Job.WriteFile] has written, to the files that
// one process would have written, byte by byte, and leaves the shards. It is an error, which
// lists them, if some are missing or not finished, and if they are not of one job.
func Collect(ctx context.Context, path string, half bool) (r Result, columns int, err error) {
	form, err := formatOf(path, half)
	if err != nil {
		return r, 0, fmt.Errorf("apply: %w", err)
	}
	release, err := files.LockFile(path)
	if err != nil {
		return r, 0, err
	}
	defer release()
	shards, err := shardsOf(form, path)
	if err != nil {
		return r, 0, err
	}
	var missing []string
	batches := 0
	var first *state
	for i, s := range shards {
		switch {
		case s == nil:
			missing = append(missing, fmt.Sprint(i))
			continue
		case first == nil:
			first = s
		case s.Key != first.Key:
			return r, 0, fmt.Errorf(
				"apply: %s: shards are of different files, models, programs or processors",
				path,
			)
		}
		r.Records += s.Records
		r.Rejected += s.Rejected
		batches = max(batches, s.Batches)
	}
	if missing != nil {
		return r, 0, fmt.Errorf("apply: %s: %d of %d shards are missing or not finished: %s",
			path, len(missing), len(shards), strings.Join(missing, ", "))
	}
	w := writer{job: &Job{Path: path}, done: r, first: first.First}
	if err := w.end(nil); err != nil {
		return r, 0, err
	}
	p := parts{names: partsOf(form, path), at: state{Result: r}}
	defer p.close()
	if err := p.open(); err != nil {
		return r, 0, err
	}
	begin := form.begin(first.Columns)
	if r.Rejected > 0 {
		begin = append(begin, csvLines(rejectedHeader))
	}
	for i, text := range begin {
		if _, err := p.files[i].Write(text); err != nil {
			return r, 0, err
		}
	}
	if err := p.join(ctx, form, path, len(shards), batches); err != nil {
		return r, 0, err
	}
	return r, len(first.Columns), p.finish(form, path, first.Columns)
}

// join appends the batches of n shards in their order.
func (p *parts) join(ctx context.Context, form format, out string, n, batches int) error {
	var from [][]*bufio.Reader
	for i := range n {
		path := shardPath(shard.Shard{I: i, N: n}, out)
		var readers []*bufio.Reader
		for _, name := range append(partsOf(form, path), path+index) {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			readers = append(readers, bufio.NewReaderSize(f, 1<<16))
		}
		from = append(from, readers)
	}
	for b := range batches {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		readers := from[b%n]
		last := len(readers) - 1
		for i, r := range readers[:last] {
			var size int64
			if _, err := fmt.Fscan(readers[last], &size); err != nil {
				return fmt.Errorf("%s: batch %d: %w",
					shardPath(shard.Shard{I: b % n, N: n}, out)+index, b, err)
			}
			if _, err := io.CopyN(p.files[i], r, size); err != nil {
				return fmt.Errorf("%s: batch %d: %w", shardPath(shard.Shard{I: b % n, N: n}, out), b, err)
			}
		}
	}
	return nil
}
