package depict_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/depict"
)

// An alcohol with one stereocentre: where its atoms are, which bond leaves the plane, and its SVG.
func Example() {
	m, err := molecule.Parse("C[C@H](O)CC")
	if err != nil {
		log.Fatal(err)
	}
	d := depict.Layout(m)
	for i, p := range d.Atoms {
		fmt.Printf("%s %.1f %.1f\n", molecule.Symbol(m.Atoms[i].Z), p.X, p.Y)
	}
	fmt.Printf("%+v\n", d.Wedges)
	svg := d.SVG(depict.Options{Title: "2-butanol"})
	fmt.Println(strings.Count(svg, "<path"), "lines and wedges")
	// Output:
	// C 2.6 0.7
	// C 1.7 0.2
	// O 1.7 -0.8
	// C 0.9 0.8
	// C 0.0 0.2
	// [{Begin:1 End:0 Up:false}]
	// 11 lines and wedges
}
