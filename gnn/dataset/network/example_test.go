package network_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/specmatch/specmatch/gnn/dataset/network"
)

// The ego network of a node is a graph to learn from.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	const edges = "u,v,binding\n0,1,1\n1,2,0\n2,3,1\n3,4,1\n"
	if err := os.WriteFile(filepath.Join(dir, "path_edges.csv"), []byte(edges), 0o666); err != nil {
		fmt.Println(err)
		return
	}
	n, err := network.Open(context.Background(), dir, "path")
	if err != nil {
		fmt.Println(err)
		return
	}
	ego := n.Ego(0, network.EgoConfig{Radius: 2}, 1)
	fmt.Println(n.Nodes(), "proteins; around the first", ego.Nodes(), "with edges of", n.Channels, ego.EdgeLabel)
	// Output:
	// 5 proteins; around the first 3 with edges of [binding] [1 1 0 0]
}
