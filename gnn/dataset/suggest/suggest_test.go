package suggest

import (
	"math/rand/v2"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"smiles", "epochs", "smiles-column", "predict", "scaffold", "stratified-scaffold", "measured log S", "y"}
	for name, want := range map[string]string{
		"SMILES":     "smiles",
		"smile":      "smiles",
		"epoch":      "epochs",
		"epcohs":     "epochs",
		"predct":     "predict",
		"scafold":    "scaffold",
		"Scaffolds":  "scaffold",
		"measured":   "measured log S",
		"Y":          "y",
		"smilescol":  "smiles-column",
		"zzz":        "",
		"":           "",
		"--":         "",
		"x":          "y",
		"completion": "",
		"pr":         "",
		"xmixxs":     "",
	} {
		if got, ok := Nearest(name, known); got != want || ok != (want != "") {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := DidYouMean("logS", []string{"measured", "logs"}); got != `; did you mean "logs"?` {
		t.Error(got)
	}
	if got := DidYouMean("logS", nil); got != "" {
		t.Error(got)
	}
	if got := DidYouMean("2", []string{"", "*", "2,4-D"}); got != `; did you mean "2,4-D"? In a list, write it as '"2,4-D"'` {
		t.Error(got)
	}
	if got := DidYouMean("2", []string{"", "*"}); got != "" {
		t.Error(got)
	}
}

// TestEdits: the distance is symmetric, 0 for equal words only, and no more than the edits that were made.
func TestEdits(t *testing.T) {
	if d := edits("kitten", "sitting"); d != 3 {
		t.Errorf("kitten to sitting: %d, want 3", d)
	}
	if d := edits("form", "from"); d != 1 {
		t.Errorf("form to from: %d, want 1", d)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		word := make([]rune, 3+rng.IntN(8))
		for i := range word {
			word[i] = 'a' + rune(rng.IntN(4))
		}
		a, n := string(word), rng.IntN(3)
		for range n {
			i := rng.IntN(len(word))
			switch rng.IntN(3) {
			case 0:
				word[i] = 'a' + rune(rng.IntN(4))
			case 1:
				word = append(word[:i], word[i+1:]...)
			default:
				word = append(word[:i], append([]rune{'e'}, word[i:]...)...)
			}
		}
		b := string(word)
		d := edits(a, b)
		if d > n || d != edits(b, a) || (d == 0) != (a == b) {
			t.Errorf("%s to %s after %d edits: %d and %d", a, b, n, d, edits(b, a))
		}
	}
}
