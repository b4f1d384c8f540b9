package layering

import (
	"os"
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
	{"the umask is overruled; killed processes leave temporary files", "tensor/files TestUmask, tensor/files TestLeftovers, specmatch/run TestSweep"},
	{"a resumed run loses -tensorboard", "specmatch/run TestTensorBoardIsKept"},
	{"embed fails in a small container by its own default", "specmatch/cmd/specmatch TestDefaultMemory"},
	{"an edited accuracy is believed", "specmatch/run TestEditedJournal"},
	{"a flag of megabytes in a message", "specmatch/run TestLongValues"},
	{"status 0 although output is lost", "specmatch/cli TestLostOutput"},
	{"rows of metrics.csv in the order in which seeds end", "specmatch/run TestMetricsAreInOrder"},
	{"a sweep replaces its own input", "specmatch/cmd/specmatch TestMistakes"},
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
