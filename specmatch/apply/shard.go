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
	"slices"
	"strings"

	"github.com/specmatch/specmatch/specmatch/shard"
	"github.com/specmatch/specmatch/tensor/files"
)

// index is the ending of a shard's list of batches: a line has the number of bytes of each file.
const index = ".index"

// shardPath returns the name of a shard of an output; the zero Shard is the output.
func shardPath(s shard.Shard, out string) string {
	if s.N == 0 {
		return out
	}
	return fmt.Sprintf("%s.shard-%d-of-%d", out, s.I, s.N)
}

// indexLine returns the line of a batch.
func indexLine(texts [][]byte) []byte {
	var b bytes.Buffer
	for _, text := range texts {
		fmt.Fprintf(&b, "%d ", len(text))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// shardStates returns the states of an output's shards, nil for those that are missing, damaged or
// incomplete. The shards of different numbers are an error, and so are none, and those of an earlier version.
func shardStates(format format, out string) (states []*state, err error) {
	journals, err := filepath.Glob(files.Pattern(out) + ".shard-*" + journalEnding)
	if err != nil {
		return nil, err
	}
	var earlier []string // shards of an earlier version
	for _, path := range journals {
		var s shard.Shard
		// Glob returns clean paths, and out may be none, such as ./v.npy.
		name := strings.TrimPrefix(filepath.Base(path), filepath.Base(out))
		_, err := fmt.Sscanf(name, ".shard-%d-of-%d.journal", &s.I, &s.N)
		if err != nil || shardPath(s, "")+journalEnding != name || s.I < 0 || s.I >= s.N {
			continue // another file
		}
		if states == nil {
			states = make([]*state, s.N)
		}
		if len(states) != s.N {
			return nil, fmt.Errorf("apply: %s: there are shards of %d and of %d; remove those that "+
				"are not meant",
				out, len(states), s.N)
		}
		states[s.I], err = shardState(format, s, out)
		if errors.Is(err, errEarlier) {
			earlier = append(earlier, fmt.Sprint(s.I))
		} else if err != nil {
			return nil, err
		}
	}
	if earlier != nil {
		return nil, fmt.Errorf("apply: %s: %d of %d shards are %w: %s; collect them with that, or repeat them with "+
			"-shard i/%[3]d", out, len(earlier), len(states), errEarlier, strings.Join(earlier, ", "))
	}
	if states == nil {
		return nil, fmt.Errorf("apply: there are no shards of %s", out)
	}
	return states, nil
}

// errEarlier is the error about the journal of a shard whose key is that of an earlier version.
var errEarlier = errors.New("of an earlier version of specmatch")

// shardState returns the state of a shard from its journal, nil if it is damaged or incomplete.
func shardState(format format, s shard.Shard, out string) (*state, error) {
	path := shardPath(s, out)
	journal := path + journalEnding
	data, err := os.ReadFile(journal)
	if err != nil {
		return nil, err
	}
	var version struct{ Key json.RawMessage }
	if json.Unmarshal(data, &version) == nil && bytes.HasPrefix(version.Key, []byte(`"`)) {
		return nil, errEarlier // its key is a text
	}
	var noted state
	if json.Unmarshal(data, &noted) != nil || !noted.Done {
		return nil, nil
	}
	p := partialFiles{names: append(partsOf(format, path), path+index), journal: journal}
	p.state.Key = noted.Key
	if err := p.resume(); err != nil || !p.state.Done {
		return nil, err
	}
	if npy, ok := format.(npyFormat); ok {
		if err := npy.checkShard(&p.state); err != nil {
			return nil, fmt.Errorf("apply: %s: %w", out, err)
		}
	}
	return &p.state, nil
}

// checkShard returns an error if the numbers of a shard are of another size than the header of the
// whole matrix would say.
func (f npyFormat) checkShard(s *state) error {
	numbers := int64(s.Records-s.Rejected) * int64(len(s.Columns))
	switch {
	case s.Sizes[0] == numbers*int64(f.size()):
		return nil
	case f.half:
		return errors.New("the shards are of float32, not of float16")
	}
	return errors.New("the shards are of float16: ask for it (-float16)")
}

// Collect joins the shards of the job's output, which [Job.WriteFile] wrote, to the files that one process
// would have written, byte by byte. It leaves the shards. The error lists shards that are missing or
// incomplete, and those of another job. An engine of another kind, as on another machine, computes nothing
// here, and is the same job.
func (j *Job) Collect(ctx context.Context, path string) (r Result, err error) {
	format, err := formatOf(path, j.Half)
	if err != nil {
		return r, fmt.Errorf("apply: %w", err)
	}
	release, err := files.LockFile(path)
	if err != nil {
		return r, err
	}
	defer release()

	// Check that all shards are there, and of one job.
	states, err := shardStates(format, path)
	if err != nil {
		return r, err
	}
	key, err := j.key(ctx)
	switch {
	case err != nil:
		return r, err
	case key == (jobKey{}):
		return r, j.errNoFile()
	}
	if err := checkShards(states, key); err != nil {
		return r, fmt.Errorf("apply: %s: %w", path, err)
	}
	batches := 0
	for _, s := range states {
		r.Records += s.Records
		r.Rejected += s.Rejected
		batches = max(batches, s.Batches)
	}
	w := writer{job: &Job{Path: path}, done: progress{r, states[0].First}}
	if err := w.end(nil); err != nil {
		return r, err
	}

	// Write the beginning of the files, and then the batches.
	p := partialFiles{names: partsOf(format, path), state: state{Result: r}}
	defer p.close()
	if err := p.open(); err != nil {
		return r, err
	}
	beginnings := format.begin(states[0].Columns)
	if r.Rejected > 0 {
		beginnings = append(beginnings, csvLines(rejectedHeader))
	}
	for i, text := range beginnings {
		if _, err := p.files[i].Write(text); err != nil {
			return r, err
		}
	}
	if err := p.join(ctx, format, path, len(states), batches); err != nil {
		return r, err
	}
	return r, p.finish(format, path, states[0].Columns)
}

// checkShards returns an error unless all shards are there, of the job with a key, and from one program on one kind
// of engine.
func checkShards(states []*state, key jobKey) error {
	var missing []string
	var foreign []string
	var differences []string
	for i, s := range states {
		if s == nil {
			missing = append(missing, fmt.Sprint(i))
			continue
		}
		job := key
		job.Engine = s.Key.Engine
		job.Program = s.Key.Program
		if names := differencesOf(s.Key, job); names != nil {
			foreign = append(foreign, fmt.Sprint(i))
			differences = append(differences, names...)
		}
	}
	n := len(states)
	if foreign != nil {
		slices.Sort(differences)
		return fmt.Errorf("%d of %d shards are of another job: %s; they differ in %s; repeat them with -shard i/%d, "+
			"or give the flags with which they were written",
			len(foreign), n, strings.Join(foreign, ", "), strings.Join(slices.Compact(differences), " and in "), n)
	}
	if missing != nil {
		return fmt.Errorf("%d of %d shards are missing or not finished: %s",
			len(missing), n, strings.Join(missing, ", "))
	}
	for i, s := range states {
		if names := differencesOf(s.Key, states[0].Key); names != nil {
			return fmt.Errorf("shards 0 and %d differ in %s; repeat one of them with -shard i/%d",
				i, strings.Join(names, " and in "), n)
		}
	}
	return nil
}

// settingFlags lists the flags that are part of jobKey.Settings.
const settingFlags = "-format, -id, -smiles-column, -attributes, -ignore, -largest-fragment, -neutralise, -keep, " +
	"-strict or -float16"

// differencesOf returns, in words, in what two jobs differ.
func differencesOf(a, b jobKey) (names []string) {
	for _, part := range []struct{ name, a, b string }{
		{"the file of records (-in)", a.Records, b.Records},
		{"how it is read or written (" + settingFlags + ")", a.Settings, b.Settings},
		{"the model or what it computes (such as -model or -readout)", a.Model, b.Model},
		{"the engine or processor", a.Engine, b.Engine},
		{"the version of the program", a.Program, b.Program},
	} {
		if part.a != part.b {
			names = append(names, part.name)
		}
	}
	return names
}

// join appends the batches of n shards in their order.
func (p *partialFiles) join(ctx context.Context, format format, out string, n, batches int) error {
	var shards [][]*bufio.Reader // the files of each shard, and last its index
	for i := range n {
		path := shardPath(shard.Shard{I: i, N: n}, out)
		var readers []*bufio.Reader
		for _, name := range append(partsOf(format, path), path+index) {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			readers = append(readers, bufio.NewReaderSize(f, 1<<16))
		}
		shards = append(shards, readers)
	}
	for b := range batches {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		path := shardPath(shard.Shard{I: b % n, N: n}, out)
		readers := shards[b%n]
		sizes := readers[len(readers)-1]
		for i, r := range readers[:len(readers)-1] {
			var size int64
			if _, err := fmt.Fscan(sizes, &size); err != nil {
				return fmt.Errorf("%s: batch %d: %w", path+index, b, err)
			}
			if _, err := io.CopyN(p.files[i], r, size); err != nil {
				return fmt.Errorf("%s: batch %d: %w", path, b, err)
			}
		}
	}
	return nil
}
