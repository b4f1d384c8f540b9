// Package run runs an experiment as a list of units in a directory: it keeps what they
// leave, runs them side by side, and resumes where a run stopped.
//
// The package is unstable: any version may change it.
//
// # The mental model
//
// An experiment is a list of units, named by strings such as "MUTAG/specmatch/seed=3": a
// method on a data set with a seed, and the like. A program adds its units to a [Plan],
// stage by stage, and finds their results in the same order when it writes its report.
// In between, the units run side by side, one per core. Each finished unit goes into the
// journal of the run directory. A program does not know whether it is resumed: started
// again with the same -out, it gets the results of finished units from the journal.
//
//	dir, err := run.Start("unsupervised", flags, datasets, recipe, engine, output)
//	…
//	defer dir.Close()
//	plan := run.NewPlan(dir)
//	var list []run.Unit[outcome]
//	for seed := range recipe.Seeds {
//		name := fmt.Sprintf("MUTAG/specmatch/seed=%d", seed)
//		list = append(list, run.Unit[outcome]{
//			Name: name,
//			Run: func(ctx context.Context, be backend.Backend, status run.Status) (outcome, error) {
//				…
//				err := dir.Metrics(name, epoch, slog.Float64("train/loss", loss))
//				…
//			},
//		})
//	}
//	outcomes := run.Add(plan, list)
//	err = plan.Run(ctx, stdout, stderr, func() error {
//		return dir.Report(stdout, rows(*outcomes), tables...)
//	})
//
// The same plan is what -list prints, what -shard runs a shard of, and what -collect puts
// together from several directories. Results depend neither on the number of cores, nor on
// shards, nor on the order in which units finish.
//
// # The directory
//
//	config.json   every flag resolved, seeds, engine, build and machine
//	metrics.csv   one row per unit and epoch
//	done.jsonl    the journal of finished units, each with its result
//	results.json  the table of the experiment, a list of [Row]
//	log.jsonl     the log, one JSON object a line
//	tensorboard/  on request, the contents of metrics.csv as TensorBoard reads them
//
// A file that is replaced is never seen half-written ([files.Write]). A file that grows may
// lose its last line when the process is killed while writing it; reopening drops the
// half line. Equal values give equal bytes. JSON has no NaN and no ±Inf: this package writes
// null for them, and reads null as NaN, in [Row], [Float] and log.jsonl. In metrics.csv they
// are NaN, +Inf and -Inf, which pandas and R read.
//
// # The files of the package
//
//	run.go, config.go     the directory: opened, resumed, locked
//	output.go, takeup.go  the flags of a run directory, and how -out alone resumes
//	units.go              plans of units, shards
//	journal.go, absorb.go finished units; what other directories have of them
//	metrics.go, tensorboard.go, results.go, read.go  what a run leaves, and reading it back
package run
