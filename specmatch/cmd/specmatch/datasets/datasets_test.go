package datasets

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/fetch"
	"github.com/specmatch/specmatch/specmatch/cli"
)

// invoke runs a command line and returns what it prints.
func invoke(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	err = Run(t.Context(), args, &o, &e)
	return o.String(), e.String(), err
}

// toy returns an archive of a set with two graphs of one edge each.
func toy(t *testing.T, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for part, text := range map[string]string{
		"A": "1, 2\n2, 1\n3, 4\n4, 3\n4, 3\n4, 4\n", "graph_indicator": "1\n1\n2\n2\n", "graph_labels": "1\n2\n",
		"node_labels": "0\n2\n0\n0\n", "node_attributes": "0.5\n1\n2\n3\n",
	} {
		w, err := z.Create(name + "/" + name + "_" + part + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, text)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// folder returns a new folder with archives of toy sets.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name+".zip"), toy(t, name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// want fails unless text has all the parts.
func want(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

// line returns the fields of the first line that begins with prefix.
func line(t *testing.T, text, prefix string) []string {
	t.Helper()
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, prefix) {
			return strings.Fields(l)
		}
	}
	t.Fatalf("no line begins with %q in:\n%s", prefix, text)
	return nil
}

func TestHelp(t *testing.T) {
	for _, h := range []string{"-h", "--help"} {
		out, _, err := invoke(t, h)
		if err != nil {
			t.Errorf("%s: %v", h, err)
		}
		for _, c := range Commands {
			want(t, out, "\n  "+c.Name+"\n")
		}
	}
	for _, c := range Commands {
		out, _, err := invoke(t, c.Name, "-h")
		if !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s -h: %v", c.Name, err)
		}
		want(t, out, "datasets "+c.Name, "-data DIR", "-dataset A,B", "default: none")
	}
	out, _, _ := invoke(t, "fetch", "-h")
	want(t, out, "-url URL", fetch.TUDatasetURL)
	out, _, _ = invoke(t, "export", "-h")
	want(t, out, "-out DIR", "default: .")
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"lists", `unknown command "lists"`},
		{"stats MUTAG", `unexpected argument "MUTAG"`},
		{"stats -dataset MUTAG", "-dataset MUTAG needs -data: the folder with MUTAG.zip or MUTAG/"},
		{"-dataset MUTAG", "needs -data"},
		{"stats -out x", "there is no flag -out"},
		{"export -url x", "there is no flag -url"},
		{"fetch", "fetch needs -data"},
		{"fetch -dataset motifs", "fetch needs -data"},
		{"stats -dataset A,A -data .", "listed twice"},
	} {
		_, _, err := invoke(t, strings.Fields(c.args)...)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want a usage error with %q", c.args, err, c.want)
		}
	}
}

func TestList(t *testing.T) {
	out, _, err := invoke(t)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(line(t, out, "motifs"), " "); got != "motifs 240 3 24.31 29.94 built in" {
		t.Errorf("motifs: %s", got)
	}
	if got := strings.Join(line(t, out, "COLLAB"), " "); got != "COLLAB 5000 3 74.49 2457.78 -" {
		t.Errorf("COLLAB: %s", got)
	}

	dir := folder(t, "MUTAG", "OTHER")
	if err := os.Mkdir(filepath.Join(dir, "RENAMED"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, _, err = invoke(t, "list", "-data", dir)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out, "no data set (NAME/NAME_A.txt): \"RENAMED\"\n") {
		t.Errorf("a folder that is no set is not named:\n%s", out)
	}
	if got, want := strings.Join(line(t, out, "MUTAG"), " "), "MUTAG 188 2 17.93 19.79 "+filepath.Join(dir, "MUTAG.zip"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := strings.Join(line(t, out, "OTHER"), " "), "OTHER ? ? ? ? "+filepath.Join(dir, "OTHER.zip"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	out, _, err = invoke(t, "list", "-data", dir, "-dataset", "OTHER,NONE")
	if err != nil || strings.Contains(out, "MUTAG") {
		t.Errorf("%v:\n%s", err, out)
	}
	if got := strings.Join(line(t, out, "NONE"), " "); got != "NONE ? ? ? ? -" {
		t.Errorf("NONE: %s", got)
	}
	if _, _, err := invoke(t, "list", "-data", filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	if _, _, err := invoke(t, "list", "-data", dir, "-dataset", "../x"); err == nil {
		t.Error("a path as a name is accepted")
	}
}

// TestMolecules: the commands on a folder with an archive and tables of molecules,
// one of them with fewer rows than it should have.
func TestMolecules(t *testing.T) {
	dir := folder(t, "TOY")
	hiv := filepath.Join(dir, "hiv.csv")
	rows := "smiles,activity,HIV_active\nCCO,CI,0\nc1ccccc1O,CA,1\nCCN,CI,\nXx,CI,0\n"
	if err := os.WriteFile(hiv, []byte(rows), 0o666); err != nil {
		t.Fatal(err)
	}
	out, _, err := invoke(t, "list", "-data", dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"hiv": "hiv 41127 1 " + hiv, "tox21": "tox21 7831 12 -", "MUTAG": "MUTAG 188 2 17.93 19.79 -"} {
		if got := strings.Join(line(t, out, name), " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if out, _, err := invoke(t, "list", "-dataset", "hiv", "-data", dir); err != nil || strings.Contains(out, "classes") || strings.Contains(out, "tox21") {
		t.Errorf("%v:\n%s", err, out)
	}

	out, stderr, err := invoke(t, "stats", "-data", dir)
	if err == nil || err.Error() != "stats: 1 of 2 data sets failed" {
		t.Errorf("got %v", err)
	}
	// Atoms of CCO, C6H5OH, CCN: 3, 7, 3; bonds 2, 7, 2; the scaffolds none and benzene.
	if got, want := strings.Join(line(t, out, "hiv"), " "), "hiv † 4 41127 1 4.33 3.67 3–7 1 1 1 1 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	line(t, out, "TOY")
	want(t, out, "† hiv disagrees: 4 rows, official 41127", "dropped: dataset: "+hiv+`:5: "Xx"`)
	want(t, stderr, "hiv: the statistics disagree with the official ones: 4 rows, official 41127")

	out, stderr, err = invoke(t, "verify", "-data", dir)
	if err != nil || !strings.HasSuffix(strings.Join(line(t, out, "hiv"), " "), "… - 3 readable") {
		t.Errorf("%v, %s:\n%s", err, stderr, out)
	}
	if err := os.WriteFile(hiv+".sha256", []byte(strings.Repeat("0", 64)+"  hiv.csv\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	out, stderr, err = invoke(t, "verify", "-data", dir, "-dataset", "hiv")
	if err == nil || !strings.HasSuffix(strings.Join(line(t, out, "hiv"), " "), "recorded ? FAILED") {
		t.Errorf("a wrong sum: %v:\n%s", err, out)
	}
	want(t, stderr, "hiv: dataset: "+hiv+": SHA-256 is ", ", want 0000")

	to := t.TempDir()
	if out, _, err := invoke(t, "export", "-data", dir, "-out", to); err != nil || out != filepath.Join(to, "TOY")+"\n" {
		t.Errorf("export leaves tables out: %v, %q", err, out)
	}
	if _, stderr, err := invoke(t, "export", "-data", dir, "-dataset", "hiv", "-out", to); err == nil || !strings.Contains(stderr, "several tasks") {
		t.Errorf("export of a table: %v, %s", err, stderr)
	}
}

func TestStats(t *testing.T) {
	out, _, err := invoke(t, "stats")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(line(t, out, "motifs"), " "); got != "motifs 240 3 24.31 - 29.94 - 10–40 5 0 0 0 0 0 0 0 0 0.0" {
		t.Errorf("motifs: %s", got)
	}

	// A set called MUTAG that is not MUTAG, and one that nobody knows.
	dir := folder(t, "MUTAG", "OTHER")
	out, stderr, err := invoke(t, "stats", "-data", dir)
	if err == nil || !strings.Contains(err.Error(), "stats: 1 of 2 data sets failed") {
		t.Errorf("got %v", err)
	}
	want(t, stderr, "MUTAG: the statistics disagree with the official ones: 2 graphs, official 188; ")
	want(t, out, "† MUTAG disagrees: 2 graphs, official 188; 2.0000 mean nodes, official 17.93; 1.5000 mean edges, official 19.79")
	if got := strings.Join(line(t, out, "MUTAG"), " "); got != "MUTAG † 2 2 2.00 17.93 1.50 19.79 2–2 2 (3) 0 1 0 1 1 0 0 0 -" {
		t.Errorf("got %s", got)
	}
	if got := strings.Join(line(t, out, "OTHER"), " "); got != "OTHER 2 2 2.00 - 1.50 - 2–2 2 (3) 0 1 0 1 1 0 0 0 -" {
		t.Errorf("got %s", got)
	}
	// The embedded set is there even with a folder, unless the folder has one.
	if out, _, err := invoke(t, "stats", "-data", dir, "-dataset", "motifs"); err != nil || line(t, out, "motifs")[1] != "240" {
		t.Errorf("%v:\n%s", err, out)
	}
	if out, _, err := invoke(t, "stats", "-data", folder(t, "motifs")); err != nil || line(t, out, "motifs")[1] != "2" {
		t.Errorf("%v:\n%s", err, out)
	}
	if _, _, err := invoke(t, "stats", "-data", t.TempDir()); err == nil || !strings.Contains(err.Error(), "this folder holds no data sets") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestStatsOfRealSets(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "..", "shared", "data", "tu")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no real data here: %v", err)
	}
	out, _, err := invoke(t, "stats", "-data", dir, "-dataset", "MUTAG,PROTEINS")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(line(t, out, "MUTAG"), " "); got != "MUTAG 188 2 17.93 17.93 19.79 19.79 10–28 7 4 0 0 0 0 13 0 0 11.6" {
		t.Errorf("got %s", got)
	}
	if got := strings.Join(line(t, out, "PROTEINS"), " "); !strings.HasSuffix(got, " 44 44 3 5.4") {
		t.Errorf("copies in PROTEINS: %s", got)
	}
}

func TestVerify(t *testing.T) {
	out, _, err := invoke(t, "verify")
	if err != nil || strings.Join(line(t, out, "motifs"), " ") != "motifs - - 240 ok" {
		t.Errorf("%v:\n%s", err, out)
	}

	dir := folder(t, "GOOD", "WRONG", "CUT")
	cut := filepath.Join(dir, "CUT.zip")
	if err := os.Truncate(cut, 100); err != nil {
		t.Fatal(err)
	}
	v, err := fetch.Verify(t.Context(), dir, "GOOD")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"GOOD": v.Sum + "  GOOD.zip\n", "WRONG": v.Sum + "  WRONG.zip\n"} {
		if err := os.WriteFile(filepath.Join(dir, name+".zip.sha256"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	ds := dataset.Default()
	ds.Name = "FOLDER"
	if err := dataset.WriteTU(dir, ds); err != nil {
		t.Fatal(err)
	}
	out, stderr, err := invoke(t, "verify", "-data", dir)
	if err == nil || !strings.Contains(err.Error(), "verify: 2 of 4 data sets failed") {
		t.Errorf("got %v", err)
	}
	for name, end := range map[string]string{"GOOD": "recorded 2 ok", "WRONG": "recorded ? FAILED", "CUT": "- ? FAILED", "FOLDER": "- 240 readable"} {
		if got := strings.Join(line(t, out, name), " "); !strings.HasSuffix(got, end) {
			t.Errorf("%s, want %q at its end", got, end)
		}
	}
	want(t, out, "without a sum to check")
	want(t, stderr, "WRONG: dataset: "+filepath.Join(dir, "WRONG.zip")+": SHA-256 is ", ", want "+v.Sum, "CUT: dataset: "+cut+": not a complete zip archive")
}

func TestExport(t *testing.T) {
	dir, out := folder(t, "TOY"), filepath.Join(t.TempDir(), "new", "out")
	stdout, _, err := invoke(t, "export", "-data", dir, "-dataset", "TOY,motifs", "-out", out)
	if err != nil {
		t.Fatal(err)
	}
	want(t, stdout, filepath.Join(out, "TOY")+"\n", filepath.Join(out, "motifs")+"\n")
	for _, name := range []string{"TOY_A.txt", "TOY_node_labels.txt", "TOY_node_attributes.txt"} {
		if _, err := os.Stat(filepath.Join(out, "TOY", name)); err != nil {
			t.Error(err)
		}
	}
	a, err := os.ReadFile(filepath.Join(out, "TOY", "TOY_A.txt"))
	if err != nil || string(a) != "2, 1\n1, 2\n4, 3\n3, 4\n" {
		t.Errorf("TOY_A.txt is %q, %v", a, err)
	}
	if ds, err := dataset.Open(t.Context(), out, "motifs", dataset.Options{}); err != nil || len(ds.Graphs) != 240 {
		t.Errorf("motifs: %v", err)
	}
	if _, stderr, err := invoke(t, "export", "-data", dir, "-out", out); err == nil || !strings.Contains(stderr, "file already exists") {
		t.Errorf("exporting again: %v, %s", err, stderr)
	}
}

// TestEdgesOfFiles: a file of graphs with weights of edges cannot be exported, which is said, and stats counts graphs
// that differ in them as others. Texts are exported as numbers, which are said.
func TestEdgesOfFiles(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	for name, values := range map[string][2]string{
		"w.jsonl": {`"edge_weights":[0.5]`, `"edge_weights":[2]`},
		"l.jsonl": {`"edge_labels":["single"]`, `"edge_labels":["double"]`},
	} {
		text := ""
		for _, class := range []string{"toxic", "safe"} {
			for _, value := range values {
				text += `{"edges":[[0,1]],"labels":["O","C"],"y":"` + class + `",` + value + "}\n"
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		table, stderr, err := invoke(t, "stats", "-data", dir, "-dataset", name)
		if err != nil {
			t.Fatal(err, stderr)
		}
		want(t, strings.Join(line(t, table, name), " "), " 0 0 3 2 1 -")
	}
	if _, stderr, err := invoke(t, "export", "-data", dir, "-dataset", "w.jsonl", "-out", out); err == nil || !strings.Contains(stderr, "edges have weights") {
		t.Errorf("weights: %v, %s", err, stderr)
	}
	stdout, stderr, err := invoke(t, "export", "-data", dir, "-dataset", "l.jsonl", "-out", out)
	if err != nil || stdout != filepath.Join(out, "l.jsonl")+"\n" {
		t.Errorf("labels: %v, %q", err, stdout)
	}
	want(t, stderr, `l.jsonl_graph_labels.txt: 0 is "safe", 1 is "toxic"`+"\n", `l.jsonl_node_labels.txt: 0 is "C", 1 is "O"`+"\n",
		`l.jsonl_edge_labels.txt: 0 is "double", 1 is "single"`+"\n")
}

func TestFetch(t *testing.T) {
	body := toy(t, "TOY")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/tu/TOY.zip":
			http.ServeContent(w, r, "", time.Unix(0, 0), bytes.NewReader(body))
		case "/tu/HIV.csv":
			http.ServeContent(w, r, "", time.Unix(0, 0), strings.NewReader("smiles,activity,HIV_active\nCCO,CI,0\n"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	out, stderr, err := invoke(t, "fetch", "-data", dir, "-dataset", "hiv", "-url", server.URL+"/tu")
	if path := filepath.Join(dir, "hiv.csv"); err != nil || out != path+": fetched\n" {
		t.Errorf("a table of MoleculeNet: %v, %q\n%s", err, out, stderr)
	}
	dir = t.TempDir()
	out, stderr, err = invoke(t, "fetch", "-data", dir, "-dataset", "TOY", "-url", server.URL+"/tu")
	if err != nil {
		t.Fatal(err, stderr)
	}
	path := filepath.Join(dir, "TOY.zip")
	if out != path+": fetched\n" {
		t.Errorf("stdout %q", out)
	}
	want(t, stderr, "TOY  100%")
	out, _, err = invoke(t, "fetch", "-data", dir, "-dataset", "TOY", "-url", server.URL+"/tu")
	if err != nil || out != path+": already there and intact\n" {
		t.Errorf("again: %v, %q", err, out)
	}
	if out, _, err := invoke(t, "verify", "-data", dir); err != nil || !strings.Contains(out, "recorded") {
		t.Errorf("verify: %v\n%s", err, out)
	}

	// One failure does not keep the others from being fetched.
	dir = t.TempDir()
	out, stderr, err = invoke(t, "fetch", "-data", dir, "-dataset", "NONE,TOY", "-url", server.URL+"/tu")
	if err == nil || !strings.Contains(err.Error(), "fetch: 1 of 2 data sets failed") {
		t.Errorf("got %v", err)
	}
	want(t, stderr, "NONE: ", "404 Not Found")
	want(t, out, "TOY.zip: fetched")

	// Without -dataset it is all known sets.
	if _, stderr, err = invoke(t, "fetch", "-data", dir, "-url", server.URL); err == nil {
		t.Error("no error")
	}
	for _, o := range dataset.Known() {
		want(t, stderr, server.URL+"/"+o.Name+".zip")
	}
}

// Ctrl-C ends a download with what cli turns into status 130, and the next
// fetch asks for the rest only.
func TestFetchInterrupted(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	var second string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if second = r.Header.Get("Range"); second != "" {
			http.Error(w, "seen enough", http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write(body[:1<<19])
		w.(http.Flusher).Flush()
		time.Sleep(50 * time.Millisecond) // for the client to write it
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	dir := t.TempDir()
	args := []string{"fetch", "-data", dir, "-dataset", "TOY", "-url", server.URL}
	var stdout, stderr bytes.Buffer
	if err := Run(ctx, args, &stdout, &stderr); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	want(t, stderr.String(), "TOY.zip.part has the first ")
	if _, _, err := invoke(t, args...); err == nil || !strings.HasPrefix(second, "bytes=") || second == "bytes=0-" {
		t.Errorf("%v; Range %q", err, second)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"stats"}, {"verify"}, {"export", "-out", t.TempDir()}} {
		if err := Run(ctx, args, io.Discard, io.Discard); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v, want context.Canceled", args, err)
		}
	}
}

// A server that does not say how much there is, and one that starts anew.
func TestDownloadProgress(t *testing.T) {
	var b bytes.Buffer
	d := &download{label: "TOY", w: &b}
	d.progress(1<<20, -1)
	if d.stop(); b.Len() > 0 {
		t.Errorf("without a total: %q", &b)
	}
	d.progress(2048, 10_000)
	d.progress(4096, 10_000)
	d.progress(0, 10_000)
	d.progress(10_000, 10_000)
	if d.stop(); !strings.Contains(b.String(), "TOY  100%  10/10") {
		t.Errorf("got %q", &b)
	}
}
