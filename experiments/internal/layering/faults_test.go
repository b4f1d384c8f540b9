package layering

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// faults are what people who used the programs on files of their own have found, with the tests that hold
// the right answers, as PACKAGE TEST, in the order in which they were found.
var faults = []struct{ fault, tests string }{
	{"a column of a table of edges that nobody named becomes a feature", "gnn/dataset/records TestRead, specmatch/cmd/specmatch TestNoLeak"},
	{"null is 0, and a key may be there twice", "gnn/dataset/records TestRead"},
	{"misspelt keys pass", "gnn/dataset/records TestRead"},
	{"attributes of nodes vanish with the format", "specmatch/cli TestNodeFeatures"},
	{"unsigned, decimal and temporal columns of Parquet", "gnn/dataset/parquet TestTypes"},
	{"invalid UTF-8 goes through", "tensor/files TestPrintable"},
	{"equal names of columns", "tensor/files TestDistinct"},
	{"an open quote eats rows", "gnn/dataset/records TestRead"},
	{"means over tasks of other units", "specmatch/cmd/specmatch TestFewPositives"},
	{"a journal that is believed; nothing but a bad record", "specmatch/apply TestJournal, specmatch/apply TestNothing"},
	{"inputs are overwritten", "tensor/files TestApart, specmatch/cmd/specmatch TestMistakes"},
	{"bytes of a sweep file that are taken for characters", "specmatch/run/sweep TestParseUnicode"},
	{"files of sweeps", "specmatch/run/sweep TestParse, specmatch/run/sweep TestPrograms"},
	{"lines of a script of Slurm", "specmatch/run/sweep TestSubmit"},
	{"an aromatic atom with too many bonds, metals, wildcards", "gnn/molecule TestRelease2026"},
	{"edges listed once are directed", "specmatch/cli TestDataOpen, gnn/dataset/records TestReadingDirected"},
	{"control characters of a model's card", "specmatch/apply TestDescribe"},
	{"lines of JSON of more than a mebibyte", "gnn/dataset/internal/textfile TestLimit"},
	{"graphs without nodes, classes below the folds", "experiments/unsupervised TestOddSets, experiments/kernels TestOddSets, gnn/dataset TestTargets"},
	{"one class in a validation part", "specmatch/cmd/specmatch TestFewPositives"},
	{"gaps, bounds, decimal commas", "specmatch/finetune TestKinds"},
	{"names with commas and blanks", "gnn/dataset/parquet TestNames, specmatch/cli TestQuoted, gnn/dataset TestOpen"},
	{"tabs, semicolons, UTF-16, node-link JSON, SD files, GraphML", "gnn/dataset/records TestRead, gnn/dataset/records TestSDF, gnn/dataset/records TestGraphML"},
	{"y of one number as a class", "gnn/dataset/records TestOpen"},
	{"a linear SVM on large features", "specmatch/eval TestLinearSVCIsBounded"},
	{"metrics of epochs, rejected records, metrics of predictions", "specmatch/cmd/specmatch TestFewPositives, specmatch/cmd/specmatch TestScore"},
	{"bombs of Parquet", "gnn/dataset/parquet TestHostileParquet, gnn/dataset/parquet TestHostilePages"},
	{"a weights file of shared tuples", "autodiff/nn/internal/pytorch TestHostile"},
	{"a field of a table without end", "gnn/dataset/internal/textfile TestBudget"},
	{"a hundred thousand cores", "specmatch/cli TestSlurmCores"},
	{"metrics of constant targets", "specmatch/finetune TestScore"},
	{"temporary files stay", "tensor/files TestSweep"},
	{"raw requests to the page's server", "experiments/playground TestRequests"},
	{"two sweeps in one directory, and one after a kill", "specmatch/run/sweep TestLocal, specmatch/run/sweep TestWaiting"},
	{"a directory of -collect that is not there", "specmatch/run TestCollect"},
	{"a damaged journal of a run", "specmatch/run TestSpoiltJournal"},
	{"folders that are no sets", "specmatch/cmd/specmatch/datasets TestList"},
	{"results that today's code does not give", "experiments/summary TestCheck"},
	{"ranks of rounding noise", "specmatch/finetune TestSettle"},
	{"Adam's count of steps", "autodiff/optim TestAdamWithoutGradient"},
	{"t-SNE of few points", "specmatch/eval/tsne TestScikitLearn"},
	{"one node or label in two spellings", "gnn/dataset/records TestSpellings"},
	{"edges that are dropped without a word", "gnn/dataset/records TestDroppedEdges, gnn/dataset TestSummary"},
	{"text in Latin-1, of which two become one", "gnn/dataset/records TestLatin1, gnn/dataset/internal/textfile TestEncodings"},
	{"a blank cuts a SMILES short", "gnn/dataset/records TestBlankInSMILES, gnn/molecule TestVerdicts"},
	{"copies of graphs across parts", "gnn/dataset TestFindCopies, gnn/dataset TestCopies, gnn/dataset TestRealCopies"},
	{"graphs behind </graphml>", "gnn/dataset/records TestGraphML"},
	{"labels of nodes that are texts", "gnn/dataset/records TestTextLabels, gnn/dataset TestTextLabels"},
	{"graphs of Neo4j and of Hugging Face", "gnn/dataset/records TestNeo4j, gnn/dataset/records TestHuggingFace"},
	{"folders of the Open Graph Benchmark", "gnn/dataset/records TestOGB"},
	{"bytes of fixed length in Parquet, UTF-16 without a mark", "gnn/dataset/parquet TestTypes, gnn/dataset/internal/textfile TestEncodings"},
	{"lengths inside the pages of Parquet", "gnn/dataset/parquet TestMutatedParquet, gnn/dataset/parquet TestCheckRuns"},
	{"rings depend on the order of the atoms; a fullerene", "gnn/molecule TestRings, gnn/molecule TestRingBounds, gnn/molecule/descriptor TestRDKit"},
	{"neutral forms and largest fragments of salts", "gnn/molecule TestStandard, gnn/molecule TestStandardTable"},
	{"bonds of any order, configurations of protonated amines", "gnn/molecule TestDigests, gnn/molecule TestWrite, gnn/molecule TestRelease2026"},
	{"logP of long chains", "gnn/molecule/descriptor TestLongChain"},
	{"atom map numbers hide duplicates and break scaffolds", "specmatch/finetune TestMapNumbers"},
	{"weights, predictions and attributes that are not finite", "specmatch/model TestOpenHostile, specmatch/apply TestNonFinite, specmatch/cmd/specmatch TestNonFinite"},
	{"a loop without end on a NaN prediction", "specmatch/finetune TestNaN"},
	{"isomorphic graphs across the parts of a fit", "specmatch/finetune TestOverlap"},
	{"labels of one molecule that contradict each other", "specmatch/finetune TestReplicates"},
	{"a linear fit that stops early", "specmatch/eval/probe TestMinimum"},
	{"a binary target among numbers; two classes without a ROC-AUC", "specmatch/finetune TestBinaryAmongNumbers, specmatch/finetune TestTwoClasses"},
	{"outputs that are devices or links, or two of one name", "tensor/files TestApart, specmatch/cmd/specmatch TestMistakes"},
	{"a fit of graphs without features of nodes ends below chance", "specmatch/finetune TestRecalibrate, specmatch/cmd/specmatch TestNodeFeatures"},
	{"the umask is overruled; killed processes leave temporary files", "tensor/files TestUmask, tensor/files TestLeftovers, specmatch/run TestSweep"},
	{"a resumed run loses -tensorboard", "specmatch/run TestTensorBoardIsKept"},
	{"embed fails in a small container by its own default", "specmatch/cmd/specmatch TestDefaultMemory, specmatch/cmd/specmatch TestContainer"},
	{"an edited accuracy is believed, or one without its checksum", "specmatch/run TestEditedJournal, specmatch/run TestLostChecksum"},
	{"twins of test graphs in the training part", "specmatch/eval TestCountTwins, specmatch/report/grid TestTwins"},
	{"labels and weights of edges of one's own graphs", "gnn/dataset/records TestEdgeValues, specmatch/cmd/specmatch TestEdgeValues"},
	{"mutants of the masked nodes and of Parquet's first page", "specmatch/method TestReplacedFeatures, gnn/dataset/parquet TestFirstPage"},
	{"a flag of megabytes in a message", "specmatch/run TestLongValues"},
	{"status 0 although output is lost", "specmatch/cli TestLostOutput"},
	{"rows of metrics.csv in the order in which seeds end", "specmatch/run TestMetricsAreInOrder"},
	{"a sweep replaces its own input", "specmatch/cmd/specmatch TestMistakes"},
	{"a spelling changes what is predicted of stereocentres", "gnn/molecule TestSpellingIsNotSeen, gnn/molecule TestSpellingOfGolden"},
	{"an explanation of a fraction of the model", "specmatch/apply TestExplainFeatures, gnn/molecule TestWithout"},
	{"drawings with malformed rings, O for OH and no wedges", "gnn/molecule/depict TestConfigured, gnn/molecule/depict TestDrawings, gnn/molecule/depict TestSVG, gnn/molecule/depict TestConventions"},
	{"intervals, distances and explanations of one model only", "specmatch/cmd/specmatch TestSureOfSeveral"},
	{"salts, metals and polymers that are usual by their distance", "specmatch/domain TestIndex, specmatch/cmd/specmatch TestDomain"},
	{"labels of one molecule that contradict each other", "specmatch/finetune TestReplicates, specmatch/check TestFindings"},
	{"mutants of the balanced mixture, of groups that are dealt out and of the strength that is chosen", "specmatch/finetune TestShift, specmatch/finetune TestLargeScaffolds, specmatch/eval/probe TestChooseStops"},
}

// TestFaults: every fault that was found by use has a test that is there.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		for name := range strings.SplitSeq(f.tests, ", ") {
			dir, test, _ := strings.Cut(name, " ")
			files, err := filepath.Glob(filepath.Join("../../..", dir, "*_test.go"))
			found := false
			for _, file := range files {
				text, errRead := os.ReadFile(file)
				if errRead != nil {
					t.Fatal(errRead)
				}
				found = found || regexp.MustCompile(`(?m)^func `+test+`\(`).Match(text)
			}
			if err != nil || !found {
				t.Errorf("%s: there is no %s in %s", f.fault, test, dir)
			}
		}
	}
}

// cases are the small inputs of faults, below CASES, each with a command of the tool and what it says now, a
// regular expression. The tests of [faults] hold the right values; these show them to a user.
var cases = []struct{ command, want string }{
	{"embed -in CASES/chem/alien.csv -features descriptors -out x.csv", "7 rows of 52 columns"},
	{"embed -in CASES/chem/fullerene.smi -features descriptors -out x.csv", "1 rows of 52 columns"},
	{"embed -in CASES/chem/halogen_count.csv -features descriptors -out x.csv", "500 rows"},
	{"embed -in CASES/chem/rings.csv -features descriptors -out x.csv", "3 rows"},
	{"embed -in CASES/chem/salts.smi -features descriptors -largest-fragment -neutralise -out x.csv", "6 rows"},
	{"embed -in CASES/chem/space.csv -features descriptors -out x.csv", "2 of 3 records could not be used"},
	{"embed -in CASES/chem/spellings.csv -features descriptors -out x.csv", "45 rows"},
	{"embed -in CASES/chem/tdc.csv -out x.csv", "2 molecules; SMILES Drug; not used Drug_ID, Y"},
	{"finetune -in CASES/chem/act.csv -target y TINY", `accuracy   ROC-AUC`},
	{"finetune -in CASES/chem/dupmap.csv -target y -split part TINY", "test molecules that also occur in the training set: 16;"},
	{"finetune -in CASES/chem/mapped.csv -target y -split scaffold TINY", "60 molecules, targets y: regression\n(at most .*\n)?.*\n?mapped"},
	{"finetune -in CASES/chem/lat_coll.csv -target Klasse TINY", `the byte 0xe4 at column 2 is not UTF-8, but perhaps Latin-1`},

	{"inspect -model CASES/hostile/c-nan.safetensors", `tensor convs.1.nn.0.weight: value 0 of 64 is NaN`},
	{"embed -in CASES/graphs/loop.jsonl -model CASES/hostile/e-nan.safetensors -out x.csv", `value 0 of 64 is NaN`},
	{"sweep -in CASES/hostile/nbsp-sweep.txt -out sweep", "no program unsupervised"}, // it was read
	{"finetune -in CASES/hostile/pa.jsonl -target y TINY", `30 graphs, targets y: regression`},
	{"finetune -in CASES/hostile/pb.jsonl -target y -folds 3 TINY", `graph 5: attribute 0 of node 0 is 3e\+38, whose square is beyond`},
	{"train -in CASES/hostile/r31.parquet -epochs 0 -out x", "runs of 2147483647 values in a page of 30"},
	{"train -in CASES/hostile/two.graphml -epochs 0 -out x", "something follows </graphml>"},

	{"train -in CASES/graphs/allundir.graphml -epochs 0 -out x", "1 graphs; labels of nodes label\n"},
	{"train -in CASES/graphs/apoc.graphml -epochs 0 -out x", "1 graphs; labels of nodes labels; labels of edges label; not used name"},
	{"train -in CASES/graphs/attr0.jsonl -epochs 0 -out x", "node 0 has an empty list of attributes"},
	{"train -in CASES/graphs/e2.csv -epochs 0 -out x", `"source,target": no column "smiles"`},
	{"train -in CASES/graphs/hf.jsonl -epochs 0 -out x", "1 graphs; attributes of nodes attributes; labels of edges edge_labels; not used y"},
	{"train -in CASES/graphs/hf.jsonl -epochs 0 -ignore edge_attr -out x", "1 graphs; attributes of nodes attributes; not used edge_attr, y"},
	{"train -in CASES/graphs/loop.jsonl -epochs 0 -out x", "24 graphs; .*24 self-loops dropped"},
	{"train -in CASES/graphs/pairs.csv -epochs 0 -out x", "1 graphs; id graph; no features of nodes\n"},
	{"train -in CASES/graphs/pairs_int.csv -epochs 0 -out x", "1 graphs; id graph; no features of nodes\n"},
	{"train -in CASES/graphs/pandas.csv -epochs 0 -out x", "60 graphs; id graph; labels of nodes label; not used y"},
	{"train -in CASES/graphs/pandas.parquet -epochs 0 -out x", "60 graphs; id graph; labels of nodes label; not used y"},
	{"finetune -in CASES/graphs/shared.jsonl -target y -kind classes -split part TINY",
		"test graphs that also occur in the training set: 10; validation graphs: 10"},
	{"finetune -in CASES/graphs/imdbm-2.jsonl.gz -target class -kind classes -split part -ignore part -seeds 1 -first-seed 2 -out x",
		`(?m)^2 +\d+ +\d+ +(4[5-9]|5\d|6\d)\.\d{3}`}, // the accuracy, of three classes

	{"finetune -in CASES/molecules/bad_utf8.csv -target y TINY", "30 molecules, targets y: regression"},
	{"finetune -in CASES/molecules/cls_names.csv -target y TINY", `10 of 30 records cannot be used[^$]*a,b predicted   ü z predicted`},
	{"finetune -in CASES/molecules/comma_dec_few.csv -target y TINY", `"0,5" has a decimal comma; write a point \(and 289 other`},
	{"embed -in CASES/molecules/comma_header.csv -features descriptors -out x.csv", "not used Caco2, pH 7.4"},
	{"finetune -in CASES/molecules/constant.csv -target y TINY", "all have the same value, so there is nothing to learn"},
	{"embed -in CASES/molecules/cx.csv -features descriptors -out x.csv", "4 rows"},
	{"embed -in CASES/molecules/cx.smi -features descriptors -out x.csv", "2 rows"},
	{"embed -in CASES/molecules/empty.parquet -out x.csv", "there are no records in it"},
	{"finetune -in CASES/molecules/header_spaces.csv -target y TINY", "30 molecules, targets y: regression"},
	{"finetune -in CASES/molecules/imb3pct.csv -target y TINY", "290 molecules, targets y: binary"},
	{"embed -in CASES/molecules/inv.csv -features descriptors -out x.csv", "22 rows"},
	{"embed -in CASES/molecules/open_quote.csv -features descriptors -out x.csv", "1 of 8 records could not be used"},
	{"embed -in CASES/molecules/open_quote_long.csv -features descriptors -out x.csv", "1 of 30 records could not be used"},
	{"finetune -in CASES/molecules/outlier.csv -target y TINY", "with a standard deviation of 1.34e\\+29 over all replicates"},
	{"finetune -in CASES/molecules/pm1.csv -target y TINY", "they have two values only: write 0 and 1 for binary targets"},
	{"embed -in CASES/molecules/psmiles.csv -features descriptors -out x.csv", "30 rows"},
	{"finetune -in CASES/molecules/rej_ft.csv -target y TINY", "3 of 30 records cannot be used"},
	{"finetune -in CASES/molecules/std_name.csv -target y,y_std TINY", "30 molecules, targets y, y_std: regression"},
	{"finetune -in CASES/molecules/t_decimal.parquet -target y TINY", "30 molecules, targets y: regression"},
	{"finetune -in CASES/molecules/target_huge.csv -target y TINY", `"1e308" is beyond 1e\+37`},
	{"finetune -in CASES/molecules/tiny_scale.csv -target y TINY", "290 molecules, targets y: regression"},
	{"finetune -in CASES/molecules/top_uint32.parquet -target y TINY", "30 molecules, targets y: regression"},
	{"finetune -in CASES/molecules/two_tasks_units.csv -target nM,logS TINY", "290 molecules, targets nM, logS: regression"},
}

// tiny are the flags of a fit that takes no time.
const tiny = "-seeds 1 -epochs 1 -hidden 4 -layers 1 -out x"

// TestFaultCases: the tool says what it should about each input by which a fault was found, where those inputs
// are.
func TestFaultCases(t *testing.T) {
	folder, err := filepath.Abs("../../../../shared/cases")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	if err != nil || files == nil {
		t.Skipf("the inputs of the faults are not in %s: none of %d commands runs", folder, len(cases))
	}
	tool := filepath.Join(t.TempDir(), "specmatch")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tool, "../../../specmatch/cmd/specmatch").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tried := map[string]bool{}
	for _, c := range cases {
		line := strings.ReplaceAll(c.command, "TINY", tiny)
		if strings.Contains(line, "molecules/") || strings.Contains(line, "chem/") {
			line = strings.ReplaceAll(line, tiny, tiny+" -features encoder")
		}
		line = strings.ReplaceAll(line, "CASES", folder)
		args := strings.Fields(line)
		for _, arg := range args {
			tried[arg] = true
		}
		command := exec.CommandContext(t.Context(), tool, args...)
		command.Dir = t.TempDir()
		out, err := command.CombinedOutput()
		if !regexp.MustCompile(c.want).Match(out) {
			t.Errorf("%s: want %s, have %v and\n%s", c.command, c.want, err, out)
		}
	}
	for _, file := range files {
		if !tried[file] {
			t.Errorf("no command tries %s", file)
		}
	}
}
