// Package apply sends files of molecules or graphs, which may be larger than memory,
// through trained models: embeddings or predictions come out, a row for each record.
//
// The mental model: a [Job] is a file of records and a [Model], a function from graphs to
// rows of numbers. [Job.Stream] reads, computes and hands on, batch by batch, and holds no
// more than one batch. [Job.WriteFile] writes the rows, as the name of the file tells:
// .csv, .npy or .parquet.
//
//	m, err := specmatch.Open("model.safetensors", be)
//	model, err := apply.Predictor(m)
//	job := apply.Job{Path: "molecules.csv", Model: model}
//	result, err := job.WriteFile(ctx, "predictions.csv")
//
// # Files
//
// A .csv has a header, then the id of a record and its numbers, with as many digits as a
// float32 needs. A .npy is a matrix of float32 in NumPy's format, with the ids, a line
// each, in OUT.ids.csv. A .parquet has the ids and the numbers as columns. Records that
// cannot be used are listed with line, id, value and reason in OUT.rejected.csv, which is
// there if there are any. All texts are UTF-8 without control characters, which are
// escaped, and a column whose name is there already gets _2 behind it. [Outputs] are the
// names of all files that may be written; none of them may be one that is read.
//
// # Interruption
//
// While a job runs its output has names that end in .partial, and OUT.journal says how far
// it is. A job that was interrupted, or whose process was killed, goes on there when it is
// started again, and ends with the same bytes. It starts anew if the file of records, the
// way to read it, the model, the program or the instruction set has changed, if what it has
// written is not there as it was, and if the records come from
// [records.Options.Input] alone, whose beginning may be gone. OUT.lock keeps other
// processes from writing the same output.
//
// # Shards
//
// Job.Shard makes a job write a share of the batches: OUT.shard-3-of-8 and its files, which
// have these names when the share is finished. Shares run anywhere, in any order, each reads
// the whole file, and [Collect] joins them to the bytes that one process writes, or says
// which are missing. A share goes on after an interruption as a job does.
package apply
