// Package shard names the shards of a job that several processes split: shard I of N.
package shard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Shard is shard I, from 0, of N. The zero Shard is the whole job.
type Shard struct{ I, N int }

// Usage explains the values auto and auto/n of a flag that [Parse] reads.
const Usage = "auto takes i and n from SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT,\n" +
	"auto/n takes i from SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX"

// String returns i/n, or "" for the zero Shard.
func (s Shard) String() string {
	if s.N == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.I, s.N)
}

// Has reports whether the k-th item of the job belongs to the shard.
func (s Shard) Has(k int) bool { return s.N == 0 || k%s.N == s.I }

// Parse parses i/n, auto or auto/n, see [Usage].
func Parse(text string) (s Shard, err error) {
	i, n, hasCount := strings.Cut(text, "/")
	if i == "auto" {
		i = cmp.Or(os.Getenv("SLURM_ARRAY_TASK_ID"), os.Getenv("JOB_COMPLETION_INDEX"))
		if i == "" {
			return s, errors.New("neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set")
		}
		if !hasCount {
			n = os.Getenv("SLURM_ARRAY_TASK_COUNT")
		}
	}
	a, errI := strconv.Atoi(i)
	b, errN := strconv.Atoi(n)
	if errI != nil || errN != nil || a < 0 || a >= b {
		return s, fmt.Errorf("shard %q of %q: want i/n with i from 0 to n-1, such as 0/8, or auto", i, n)
	}
	return Shard{a, b}, nil
}
