package apply

import (
	"context"
	"sync"

	"github.com/specmatch/specmatch/gnn/dataset/records"
)

// A batch ends with this many records, or when its graphs have this many nodes. Where a record has a vector, 1,024 of
// 4,000 numbers would be 16 MB, and several batches are in work for each processor.
const (
	batchRecords = 1024
	batchVectors = 256
	batchNodes   = 1 << 16
)

// batchSize returns the greatest number of records of a batch.
func (input Input) batchSize() int {
	if input.Vector != nil {
		return batchVectors
	}
	return batchRecords
}

// Stream calls emit with each batch, in the order of the file, and reuses its memory for a later
// one. An error of emit or of ctx ends it. A record whose row is not finite has an Err. Batches are
// computed on a goroutine for each model; emit is called on the caller's.
func (j *Job) Stream(ctx context.Context, emit func(Batch) error) error {
	return j.stream(ctx, sink{emit: emit})
}

// sink is what takes the batches of a stream. Only emit must be set. A batch passes the functions in
// their order.
type sink struct {
	// prepare and store run on the goroutine that computed the batch, at the same time as those of
	// other batches.
	prepare func(*Batch) error
	// place runs there, too, but for one batch after the other, in the order of the file.
	place func(*Batch)
	store func(*Batch) error
	// emit runs on the caller's goroutine, in the order of the file.
	emit func(Batch) error
}

// stream is [Job.Stream] into a sink.
func (j *Job) stream(ctx context.Context, s sink) error {
	ctx, cancel := context.WithCancel(ctx)
	p := j.startPipeline(ctx, s)
	defer p.close()
	defer cancel()

	b := p.next()
	b.number = j.firstBatch
	b.end = j.Records.Skip
	flush := func() error {
		if len(b.Records) == 0 {
			return nil
		}
		b.end += len(b.Records)
		number, end := b.number, b.end
		if j.Shard.Has(number) {
			if err := p.add(b); err != nil {
				return err
			}
			b = p.next()
		}
		b.restart(number+1, end)
		return ctx.Err()
	}
	nodes := 0
	limit := j.Model.Reads.batchSize()
	options := j.Model.Reads.Options(j.Records)
	err := records.Read(ctx, j.Path, options, func(r *records.Record) error {
		if r.Err == nil {
			nodes += r.Graph.Nodes()
		} else if j.Strict {
			return r.Err
		}
		b.Records = append(b.Records, r)
		if len(b.Records) < limit && nodes < batchNodes {
			return nil
		}
		nodes = 0
		return flush()
	})
	if err == nil {
		err = flush()
	}
	// Batches before a bad record are complete.
	if drainErr := p.drain(); drainErr != nil {
		err = drainErr
	}
	return err
}

// pipeline computes batches on several goroutines, and emits them in order.
type pipeline struct {
	ctx context.Context
	job *Job
	sink

	work    chan *batchInWork
	workers sync.WaitGroup
	queue   []*batchInWork // being computed, in order
	limit   int            // of queue
	free    []*batchInWork

	placed  chan struct{} // of the last batch that was added
	dropped error         // of the first batch that failed before its place
}

// batchInWork is a batch whose Values are computed when done is closed.
type batchInWork struct {
	Batch
	err          error
	turn, placed chan struct{} // closed when the batch before it, and when it, has its place
	done         chan struct{}
}

// startPipeline starts a goroutine for each model. The caller closes the pipeline, after ctx is
// cancelled.
func (j *Job) startPipeline(ctx context.Context, s sink) *pipeline {
	models := append([]Model{j.Model}, j.Replicas...)
	p := &pipeline{
		ctx:    ctx,
		job:    j,
		sink:   s,
		limit:  len(models) + 1, // one that waits, so that no worker does
		placed: make(chan struct{}),
	}
	close(p.placed)
	p.work = make(chan *batchInWork, p.limit)
	for _, m := range models {
		p.workers.Go(func() { p.compute(&m) })
	}
	return p
}

// compute computes batches with one model until there are no more.
func (p *pipeline) compute(m *Model) {
	for b := range p.work {
		b.err = p.ctx.Err()
		if b.err == nil {
			b.err = p.job.compute(p.ctx, m, &b.Batch)
		}
		if b.err == nil && p.prepare != nil {
			b.err = p.prepare(&b.Batch)
		}
		// Batches are taken in their order, so the one before this has been taken, too.
		<-b.turn
		p.givePlace(b)
		close(b.placed)
		if b.err == nil && p.store != nil {
			b.err = p.store(&b.Batch)
		}
		close(b.done)
	}
}

// givePlace calls place, unless this batch or one before it failed.
func (p *pipeline) givePlace(b *batchInWork) {
	if b.err == nil {
		b.err = p.dropped
	}
	p.dropped = b.err
	if b.err == nil && p.place != nil {
		p.place(&b.Batch)
	}
}

// next returns an empty batch.
func (p *pipeline) next() *batchInWork {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	return &batchInWork{Batch: Batch{text: new([]byte), width: len(p.job.Model.Columns)}}
}

// restart empties the batch, which is the next one after end records of the file.
func (b *batchInWork) restart(number, end int) {
	b.Records = b.Records[:0]
	b.number = number
	b.end = end
}

// add gives a batch to the workers. It first emits the oldest one if enough are being computed.
func (p *pipeline) add(b *batchInWork) error {
	if len(p.queue) == p.limit {
		if err := p.emitOldest(); err != nil {
			return err
		}
	}
	b.turn = p.placed
	b.placed = make(chan struct{})
	p.placed = b.placed
	b.done = make(chan struct{})
	p.queue = append(p.queue, b)
	p.work <- b
	return nil
}

// emitOldest waits for the oldest batch and emits it. An error drops the batches behind it.
func (p *pipeline) emitOldest() error {
	b := p.queue[0]
	p.queue = p.queue[1:]
	<-b.done
	err := b.err
	if err == nil {
		err = p.emit(b.Batch)
	}
	if err != nil {
		p.queue = nil
		return err
	}
	p.free = append(p.free, b)
	return nil
}

// drain emits all batches, up to the first error.
func (p *pipeline) drain() error {
	for len(p.queue) > 0 {
		if err := p.emitOldest(); err != nil {
			return err
		}
	}
	return nil
}

// close ends the workers.
func (p *pipeline) close() {
	close(p.work)
	p.workers.Wait()
}
