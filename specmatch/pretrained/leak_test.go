package pretrained_test

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/tensor"
)

// shared holds the data sets, where they are at hand.
const shared = "../../../shared/data"

// smallSets are judged sets that are read without SPECMATCH_LARGE.
var smallSets = []string{"bace", "herg", "caco2_wang", "hia_hou", "bioavailability_ma", "clearance_microsome_az"}

// skeletons identifies molecules as graphs: the largest fragment, neutral, without configurations.
type skeletons struct{ parser molecule.Parser }

func newSkeletons() *skeletons {
	s := &skeletons{}
	s.parser.Standard.LargestFragment, s.parser.Standard.Neutralise = true, true
	return s
}

var marks = strings.NewReplacer("@", "", "/", "", `\`, "")

func (s *skeletons) of(smiles string) string {
	m, err := s.parser.Parse(marks.Replace(smiles))
	if err != nil {
		return ""
	}
	return s.parser.Canonical(m)
}

// open returns the text of a packed file.
func open(t *testing.T, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("without data: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestTaught: the encoders are taught by what is computed from molecules, and no label measured of any. The numbers
// that taught minimol are another model's, of molecules of ChEMBL's measurements, which are checked below. An encoder
// taught by the measurements needs checks of the tables that its card names.
func TestTaught(t *testing.T) {
	methods := map[string]string{"zinc": "descriptors", "minimol": "assays"}
	for _, encoder := range pretrained.Encoders {
		m, err := encoder.Open(cpu.New(tensor.Float32))
		if err != nil {
			t.Fatal(err)
		}
		if p := m.Card.Provenance; p.Method != methods[encoder.Name] {
			t.Errorf("%s is taught by %s: this test does not know its labels", encoder.Name, p.Method)
		}
	}
}

// TestNoJudgedMolecule: the measurements of ChEMBL have no molecule of a judged set, however it is written. All of
// them are checked with SPECMATCH_LARGE, else every fiftieth against small sets. 91 of the 396,656 rows match all the
// same; those that were looked at differ by a proton from molecules of the CYP sets. assays.py drops such rows.
func TestNoJudgedMolecule(t *testing.T) {
	large := os.Getenv("SPECMATCH_LARGE") != ""
	taught := open(t, shared+"/fsmol/fsmol.tsv.gz")
	paths, err := filepath.Glob(shared + "/*/*.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	skeleton := newSkeletons()
	judged := map[string]string{}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".csv.gz")
		folder := filepath.Base(filepath.Dir(path))
		if folder != "moleculenet" && folder != "admet" || !large && !slices.Contains(smallSets, name) {
			continue
		}
		rows, err := csv.NewReader(open(t, path)).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		column := slices.IndexFunc(rows[0], func(h string) bool { return strings.EqualFold(h, "smiles") || h == "mol" })
		for _, row := range rows[1:] {
			if s := skeleton.of(row[column]); s != "" {
				judged[s] = name
			}
		}
	}
	if len(judged) < 4000 {
		t.Fatalf("%d judged molecules", len(judged))
	}
	found, read := 0, 0
	before := ""
	lines := bufio.NewScanner(taught)
	for n := 0; lines.Scan(); n++ {
		smiles, _, _ := strings.Cut(lines.Text(), "\t")
		if smiles == before || !large && n%50 != 0 {
			continue
		}
		before = smiles
		read++
		if set := judged[skeleton.of(smiles)]; set != "" {
			found++
			if !strings.HasPrefix(set, "cyp") {
				t.Logf("%s is in %s", smiles, set)
			}
		}
	}
	if err := lines.Err(); err != nil || read < 5000 {
		t.Fatalf("%d molecules, %v", read, err)
	}
	if found > read/4000 {
		t.Errorf("%d of %d molecules are among %d judged ones", found, read, len(judged))
	}
}

// TestNoJudgedTarget: assays.py leaves the targets of judged sets out of soft labels; their ids are targets of the
// model that makes these, but for a few.
func TestNoJudgedTarget(t *testing.T) {
	data, err := os.ReadFile(shared + "/teachers/targets_37_all.json")
	if err != nil {
		t.Skipf("without data: %v", err)
	}
	var targets []string
	if err := json.Unmarshal(data, &targets); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../cmd/specmatch/testdata/assays.py")
	if err != nil {
		t.Fatal(err)
	}
	judged := map[string]string{}
	known := 0
	for _, m := range regexp.MustCompile(`"(CHEMBL\d+)": "(\w+)`).FindAllStringSubmatch(string(script), -1) {
		judged[m[1]] = m[2]
		if slices.Contains(targets, m[1]) {
			known++
		}
	}
	for id, name := range map[string]string{
		"CHEMBL4822": "BACE1", "CHEMBL240": "KCNH2", "CHEMBL3356": "CYP1A2", "CHEMBL3397": "CYP2C9", "CHEMBL3622": "CYP2C19",
		"CHEMBL289": "CYP2D6", "CHEMBL340": "CYP3A4", "CHEMBL4302": "ABCB1", "CHEMBL3401": "NR1I2",
	} {
		if judged[id] != name {
			t.Errorf("%s, %s, is not left out", id, name)
		}
	}
	if len(judged) < 30 || known < 30 {
		t.Errorf("%d targets, of which the model knows %d", len(judged), known)
	}
}
