// Package apply sends files of molecules or graphs, which may be larger than memory, through
// trained models, and writes a row of embeddings or predictions for each record.
//
// The mental model: a [Job] is a file of records and a [Model], a function from graphs to rows of
// numbers. [Job.Stream] reads and computes batch by batch, and holds two batches more than
// it has models.
// [Job.WriteFile] writes the rows as .csv, .npy or .parquet, by the name of the file.
//
//	m, err := model.Open("model.safetensors", be)
//	predictor, err := apply.Predictor(m)
//	job := apply.Job{Path: "molecules.csv", Model: predictor}
//	result, err := job.WriteFile(ctx, "predictions.csv")
//
// # Files
//
// A .csv has a header, then the id of each record and its numbers, with as many digits as a float32
// needs. A .npy is a matrix of float32 in NumPy's format, with the ids, a line each, in
// OUT.ids.csv. A .parquet has the ids and the numbers as columns. Records that cannot be used, or
// whose result is not finite, are listed with line, id, value and reason in OUT.rejected.csv, if
// there are any. All text is UTF-8; control characters are escaped but for tabs and line feeds in
// ids and copied fields, and a column gets _2 after its name if the name is taken. [Outputs] returns the names of all files that may be written; none of
// them may be an input.
//
// # Interruption
//
// While a job runs, its outputs have names that end in .partial, and OUT.journal says how far it
// is. A job that was interrupted or killed resumes when it is started again, and ends with the same
// bytes. It starts anew if the records, their options, the model, the program or the instruction
// set have changed, or if the files do not hold what the journal says. It also does if the records
// come from [records.Options.Input] alone, whose beginning may be lost. OUT.lock keeps other
// processes from writing the same output.
//
// # Shards
//
// Job.Shard makes a job write a part of the batches, as OUT.shard-3-of-8 and its files, which have
// these names when the shard is complete. Shards run anywhere and in any order; each reads the
// whole file. [Collect] joins them to the bytes that one process writes, or says which are missing.
// A shard resumes after an interruption as a job does.
package apply
