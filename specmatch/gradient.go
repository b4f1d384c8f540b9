package specmatch

import (
	"math"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/tensor"
)

// Probe is the closer look at one step: the gradients of the two losses over
// all parameters, and a diagnosis of the embeddings.
type Probe struct {
	GradC, GradG float64 // ‖∇L_C‖, ‖∇L_G‖
	Ratio        float64 // β·‖∇L_G‖/‖∇L_C‖ with the β in force
	Cosine       float64 // cosine of ∇L_C and ∇L_G; 0 if either is zero
	Diagnosis
}

// probe runs one backward pass per loss and compares the gradients.
func (tr *Trainer) probe(lossC, lossG, z1, z2 *autodiff.Var) *Probe {
	gc, gg := tr.gradient(lossC), tr.gradient(lossG)
	p := &Probe{Diagnosis: Diagnose(z1.Data(), z2.Data(), z1.Rows(), z1.Cols(), tr.Objective.Match)}
	var cc, gG, cg float64
	for i := range gc {
		cc += gc[i] * gc[i]
		gG += gg[i] * gg[i]
		cg += gc[i] * gg[i]
	}
	p.GradC, p.GradG = math.Sqrt(cc), math.Sqrt(gG)
	if cc > 0 && gG > 0 {
		p.Cosine = cg / (p.GradC * p.GradG)
	}
	return p
}

// gradient returns the gradient of loss with respect to all parameters, one after
// another, and leaves the parameters without gradient.
func (tr *Trainer) gradient(loss *autodiff.Var) []float64 {
	var all []float64
	if loss.NeedsGrad() {
		tr.tape.Backward(loss)
	}
	for _, p := range tr.Model.Parameters() {
		g := make([]float64, p.Value.Len())
		if p.HasGrad() {
			tr.be.Download(g, p.Grad)
		}
		all = append(all, g...)
		p.ZeroGrad()
	}
	return all
}

// gradNorm returns the norm of the gradient over all parameters.
func (tr *Trainer) gradNorm() float64 {
	sum := tr.be.Alloc(1, 1)
	defer tr.be.Free(sum)
	tr.squaredNorm(sum)
	var v [1]float64
	tr.be.Download(v[:], sum)
	return math.Sqrt(v[0])
}

// squaredNorm sets sum [1×1] to Σ‖p.Grad‖² over the parameters with a gradient.
func (tr *Trainer) squaredNorm(sum *tensor.Tensor) {
	var grads []*tensor.Tensor
	for _, p := range tr.Model.Parameters() {
		if p.HasGrad() {
			grads = append(grads, p.Grad)
		}
	}
	if f := tr.tape.Fused().Adam; f != nil {
		f.SquaredNorm(sum, grads)
		return
	}
	one := tr.be.Alloc(1, 1)
	defer tr.be.Free(one)
	tr.be.Fill(sum, 0)
	for _, g := range grads {
		tr.be.Dot(one, g, g)
		tr.be.Axpby(sum, 1, sum, 1, one)
	}
}
