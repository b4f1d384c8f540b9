package play

import "testing"

// TestRecord: the opening has a frame for the untrained encoder and for each epoch, of all graphs, in range, and its
// accuracies are those of the training that it names.
func TestRecord(t *testing.T) {
	o, err := RecordOpening(1)
	if err != nil {
		t.Fatal(err)
	}
	graphs := len(o.Classes)
	if len(o.Frames) != 2 || graphs != 240 || o.Frames[0].Accuracy != o.Untrained {
		t.Fatalf("%d frames of %d graphs; the first has %v, untrained %v", len(o.Frames), graphs, o.Frames[0].Accuracy, o.Untrained)
	}
	for k, f := range o.Frames {
		if len(f.Points) != 2*graphs {
			t.Errorf("frame %d has %d numbers", k, len(f.Points))
		}
		for _, v := range f.Points {
			if v < 0 || v > 1000 {
				t.Fatalf("frame %d has a point at %d", k, v)
			}
		}
	}
	if o.Views[0].Labels == nil || len(o.Views[0].Edges) != len(o.Graph.Edges) || o.Labels >= o.Untrained {
		t.Errorf("the graph of the opening: %+v; %v", o.Graph, o)
	}
}
