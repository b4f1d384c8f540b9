package method

// specMatch is SpecMatch-CL (Graph contrastive learning via spectral graph
// alignment): on two augmented views of every graph,
//
//	L = L_C + β·L_G,
//
// with L_C of [specmatch.InfoNCE] and L_G, the distance of the normalised
// Laplacians of the similarity graphs that the views induce over the batch, of
// [specmatch.LaplacianMatch].
//
// The paper's threshold of similarities has no gradient: taken literally, the
// method is InfoNCE, bit for bit. Here the threshold is soft, for the reasons
// in the doc comment of package specmatch; the setting adjacency has the literal form.
var specMatch = &Method{
	Name:     SpecMatch,
	Title:    "SpecMatch-CL",
	Regimes:  []Regime{Unsupervised, SemiSupervised, Transfer},
	Settings: matchSettings,
	new: func(s Setup) (*Learner, error) {
		loader, err := s.twoViews()
		if err != nil {
			return nil, err
		}
		return newContrastive(s, Objective(s.Options), loader)
	},
}
