package method

// The list of methods is set in init, because the methods read it themselves when they complete a setup.
func init() {
	methods = []*Method{
		untrained,
		untrainedTorch,
		infoGraph,
		gae,
		edgePred,
		attrMasking,
		descriptors,
		assays,
		infomax,
		contextPred,
		graphMAE,
		s2gae,
		graphCL,
		joao,
		joaov2,
		simGRACE,
		mssgcl,
		cuCo,
		infoNCE,
		jitter,
		ema,
		emaBatch,
		emaMemory,
		specMatch,
	}
}
