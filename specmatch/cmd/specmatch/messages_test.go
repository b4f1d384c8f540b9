package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMessages: what is typed by mistake is answered with what to type.
func TestMessages(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	write(t, "odd.csv", "name,mol,y\na,CCO,1\nb,CCC,2\n")
	write(t, "two.csv", "mol,parent,y\nCCO,CCCO,1\n")
	write(t, "m.sdf", "ethane\n\n\n  2  1  0  0  0  0            999 V2000\n"+
		"    0.0000    0.0000    0.0000 C   0  0\n    1.5000    0.0000    0.0000 C   0  0\n"+
		"  1  2  1  0\nM  END\n>  <pIC50>\n5.5\n\n$$$$\n")
	write(t, "active.csv", "smiles,y\nCCO,active\nCCC,active\nCCN,\n")
	write(t, "similar.csv", "raw_smiles,SMILES_std,y\nCCO,CCCO,1\n")
	write(t, "bare.csv", "CCO,1\nCCC,2\n")
	write(t, "none.csv", "a,b\n1,2\n")
	write(t, "commas.csv", "smiles,id,\"y, nM\"\nCCO,\"2,4-D\",1\n")
	write(t, "blank.csv", "smiles,,\nCCO,,\n")
	write(t, "doubled.csv", "smiles,y,y,a,b,\nCCO,1,2,3,4,5\n")
	write(t, "notgz.csv.gz", "smiles,y\nCCO,1\n")
	write(t, "edges.csv", "source,target\n1,2\n2,3\n")
	must(t, "finetune -in m.csv -target length -epochs 1 -seeds 2 -out run"+few+tiny)
	must(t, "embed -in m.csv -features descriptors -out v.npy")
	write(t, "smiles.txt", "smiles\nCCO\n")
	write(t, "m.csv.shard-0-of-2", moleculeTable(60))
	if err := os.Mkdir("page.html", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(letters(t, "T", "1"), "renamed"); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join("run", division{}.modelFile())
	for line, want := range map[string]string{
		// flags and commands
		"embed -smiles smiles":           "there is no flag -smiles; did you mean -smiles-column?",
		"finetune -epoch 1":              "there is no flag -epoch; did you mean -epochs?",
		"finetune -targets y":            "there is no flag -targets; did you mean -target?",
		"predict -models x":              "there is no flag -models; did you mean -model?",
		"embed -xyzzy 1":                 "there is no flag -xyzzy",
		"predct":                         `unknown command "predct"; did you mean "predict"?`,
		"fine-tune":                      `unknown command "fine-tune"; did you mean "finetune"?`,
		"m.csv":                          `this is a file, and a command comes first, as in embed -in m.csv`,
		"frobnicate":                     `unknown command "frobnicate": want one of train, embed`,
		"predict -in m.csv -model a b":   "-out b: want a name that ends in .npy, .csv or .parquet, or -",
		"embed m.csv w.npy more":         `unexpected argument "more": every value follows its flag, as in -model more`,
		"embed m.csv w.npy -strict true": `unexpected argument "true": a switch takes its value after =, as in -strict=true`,
		"completion fihs":                `want bash, zsh or fish; did you mean "fish"?`,
		"finetune m.csv more":            "-target is needed: the column of m.csv to predict, of ",
		"predict m.csv p.csv -model a.safetensors b.safetensors": "several models are one value, as in -model A,B or -model RUN",
		"train -method infonec -in m.csv":                        `did you mean "infonce"?`,
		"finetune -kind regresion":                               `did you mean "regression"?`,
		"finetune -in m.csv -loss absolut":                       `did you mean "absolute"?`,
		"finetune doubled.csv":                                   "-target is needed: the column of doubled.csv to predict, of a, b",
		"embed notgz.csv.gz w.npy":                               "notgz.csv.gz: is no gzip file (gzip: invalid header): rename it without .gz",
		// columns
		"finetune -in m.csv -target Length":                        `no column "Length"; did you mean "length"?`,
		"finetune -in m.csv -target lenght":                        `no column "lenght"; did you mean "length"?`,
		"embed -in m.csv -smiles-column SMILES -out w.npy":         `no column "SMILES"; did you mean "smiles"?`,
		"embed -in m.csv -id nam -out w.npy":                       `no column "nam"; did you mean "name"?`,
		"predict -in m.csv -keep parts -out w.csv -model " + model: `no column "parts"; did you mean "part"?`,
		"embed -in two.csv -out w.npy":                             `several have molecules: say which (-smiles-column mol or parent)`,
		"embed -in similar.csv -out w.npy":                         `several whose names contain it: say which (-smiles-column raw_smiles or SMILES_std)`,
		"embed -in bare.csv -out w.npy":                            `this line has a molecule, where the names of the columns should be`,
		"embed -in none.csv -out w.npy":                            `the first row has no molecule: say which column has them (-smiles-column)`,
		"train -in edges.csv -epochs 0 -out x":                     `a table of edges has a column graph besides source and target`,
		"finetune -in m.csv -target logS -out x":                   `"name,smiles,length,share,much,known,most,part": no column "logS"`,
		// files
		"embed -in n.csv -out w.npy":                                      "-in n.csv: there is no such file",
		"embed -in two.cvs -out w.npy":                                    "-in two.cvs: there is no such file; did you mean two.csv?",
		"finetune -in m.cvs -target length -features descriptors":         "-in m.cvs: there is no such file; did you mean m.csv?",
		"finetune -in similar.csv -target y -features descriptors":        "say which (-smiles-column raw_smiles or SMILES_std)",
		"train -in m.cvs":                                                 "-in m.cvs: there is no such file; did you mean m.csv?",
		"check -in m.cvs":                                                 "-in m.cvs: there is no such file; did you mean m.csv?",
		"check -in m.csv -out no/where/w.csv":                             "there is no folder no/where; make it first, as by mkdir -p no/where",
		"embed -in m.csv.zip -out w.npy":                                  "unpack it (unzip m.csv.zip), or compress the table with gzip",
		"embed -in m.csv -out no/where/w.npy":                             "there is no folder no/where; make it first, as by mkdir -p no/where",
		"predict -in m.csv -out w.csv -explain no/e.html -model " + model: "-explain no/e.html: there is no folder no; make it first",
		"predict -in m.csv -out w.csv -domain no/d.csv -model " + model:   "-domain no/d.csv: there is no folder no",
		"search -in m.csv -query CCO -out h.csv -page no/h.html":          "-page no/h.html: there is no folder no",
		"search -in - -queries - -out h.csv":                              "standard input can be one of -in and -queries",
		"finetune -in - -target length -valid -":                          "standard input can be one of -in, -valid and -test",
		"finetune -in m.csv -target length -valid - -test -":              "standard input can be one of -in, -valid and -test",
		"embed -in m.csv -out w.txt":                                      "-out w.txt: want a name that ends in .npy, .csv or .parquet, or -",
		"embed -in m.csv -out m.csv":                                      "-out: cannot write m.csv: it is the input m.csv",
		"finetune -in m.csv -target length -out none.csv":                 "-out none.csv: this is a file; want a directory for the run",
		"train -in m.csv -out none.csv":                                   "-out none.csv: this is a file; want a directory for the run",
		"finetune -in m.csv -target length -test n.csv":                   "-test n.csv: there is no such file; did you mean m.csv?",
		"report -in nope -out r.html":                                     "nope: there is no such run directory; want the -out of a run",
		"report -in m.csv -out r.html":                                    "m.csv: this is a file; want the -out of a run, or a folder with some",
		"compare -in run -out r.html":                                     "-in is needed: two runs, as in -in runs/a,runs/b",
		// libraries
		"search -in m.csv -out h.csv":                            "-query, -queries or -smarts is needed: SMILES to search for, a file of them, or a substructure",
		"search -in m.csv -query CC( -out h.csv":                 `"CC(": character 4 of the SMILES: the string ends where an atom is expected`,
		"search -in m.csv -smarts C( -out h.csv":                 "-smarts C(: smarts: ",
		"search -in m.csv -smarts C -least 0.5 -out h.csv":       "-least, -by and -model compare molecules with queries: give -query or -queries",
		"search -in m.csv -query CCO -out h.txt":                 "-out h.txt: want a name that ends in .csv, or -",
		"search -in m.csv -query CCO -top 0 -out h.csv":          "-top 0 finds all molecules that are similar enough: give -least",
		"search -in m.csv -query CCO -by bit -out h.csv":         `want bits, counts or vectors; did you mean "bits"?`,
		"search -in m.csv -query CCO -by counts:2:64 -out h.csv": "want bits:RADIUS:SIZE, with a size from 1 to 65536",
		"search -in m.csv -queries two.cvs -out h.csv":           "-queries two.cvs: there is no such file; did you mean two.csv?",
		"search -in m.csv -queries odd.csv -out odd.csv":         "-out: cannot write odd.csv: it is the input odd.csv",
		"search -in edges.csv -query CCO -out h.csv":             "a table of edges has a column graph besides source and target",
		"serch -in m.csv":                                          `unknown command "serch"; did you mean "search"?`,
		"cluster -in m.csv -out m.csv":                             "-out: cannot write m.csv: it is the input m.csv",
		"cluster -in m.csv -scaffold -least 0.5 -out c.csv":        "-scaffold compares scaffolds: leave out -least, -by and -model",
		"pick -in m.csv -id name -first m999 -out p.csv":           "-first m999: no molecule of m.csv has this id",
		"pick -in m.csv -first 1 -seed 2 -out p.csv":               "-seed chooses the first pick, which -first names: leave one of them out",
		"map -in m.csv -out m2.csv -colour length":                 "-colour is for -page, which is not given",
		"map -in m.csv -out m2.csv -page m.htm":                    "-page m.htm: want a name that ends in .html",
		"map -in m.csv -out m2.csv -colour lenght -page m.html":    `no column "lenght"; did you mean "length"?`,
		"map -in m.csv -out m2.csv -method umap":                   `want pca or tsne`,
		"map -in m.csv -out m2.csv -method pca -perplexity 5":      "-perplexity and -iterations are for -method tsne",
		"map -in m.csv -out m2.csv -model run/model-0.safetensors": "-model is for -by vectors",
		"map -in m.csv": "-out is needed: a .csv file, or -",
		// what is needed
		"embed":                        "-in is needed: a file of molecules or graphs",
		"embed -in m.csv":              "-out is needed: a .npy, .csv or .parquet file, or -",
		"predict -in m.csv -out w.csv": "-model is needed: a model file from finetune",
		"report":                       "-in is needed: one or more run directories",
		"datasets":                     `did you mean "datasets list"?`,
		// values
		"finetune -in m.csv -target length -seeds 0":            `invalid value "0" for flag -seeds: want a whole number of at least 1`,
		"finetune -in m.csv -target length -folds 1":            "-folds 1: want at least 2, or 0 for splits by -split",
		"embed -in m.csv -out w.npy -features foo":              "want encoder, pretrained[:NAME], descriptors, rdkit, crippen, morgan",
		"embed -in m.csv -out w.npy -shard 3/2":                 "want i/n with i from 0 to n-1, such as 0/8",
		"embed -in m.csv -out w.npy -backend cudo":              `want cpu, cuda or cuda-3xtf32; did you mean "cuda"?`,
		"finetune -in active.csv -target y":                     `column y has "active" in all records with a target, so there is nothing to learn`,
		"finetune -in m.sdf -target pic50":                      "no record has a value of pic50; did you mean \"pIC50\"?",
		"check -in m.sdf -target pic50":                         "no record has a value of pic50; did you mean \"pIC50\"?",
		"finetune -in m.sdf -target pIC50 -split name":          "no record has a value of name; did you mean \"_Name\"?",
		"finetune -in commas.csv -target y,nM":                  `no column "y"; did you mean "y, nM"? In a list, write it as '"y, nM"'`,
		"pick -in commas.csv -id id -first 2,4-D -out p.csv":    `-first 2: no molecule of commas.csv has this id; did you mean "2,4-D"? In a list, write it as '"2,4-D"'`,
		"pick -in blank.csv -id y -first 2 -out p.csv":          `no column "y"`,
		"check -in m.sdf -id Name":                              `no record can be used, such as line 1: there is no "Name"`,
		"predict -in m.csv -answers -out w.csv -model " + model: "answers are of binary tasks, and the model predicts others",
		// splits
		"finetune -in m.csv -target length -split stratified-scaffold": `length has numbers; random, scaffold and cluster take them`,
		"finetune -in m.csv -target length -folds 100":                 `fold 1 of 100, with 60 records that have a target; want at least 2 folds, and a record in each`,
		"finetune -in m.csv -target length -split scafold":             `did you mean "scaffold"?`,
		"finetune -in m.csv -target length -split parts":               `did you mean "part"?`,
		// models
		"embed -in m.csv -model run -out w.npy":       "this directory has 2 models; name one, such as run/model-0.safetensors",
		"predict -in m.csv -model . -out w.csv":       "this directory has no model*.safetensors",
		"predict -in m.csv -model v.npy -out w.csv":   "v.npy: is a .npy matrix",
		"predict -in m.csv -model m.csv -out w.csv":   "m.csv: is a text; want a model file",
		"predict -in m.csv -model none.st -out w.csv": "none.st: no such file",
		// places
		"predict -in m.csv -model run/config.json -out w.csv":            "run/config.json: is a text; want a model file",
		"predict -in m.csv -model smiles.txt -out w.csv":                 "smiles.txt: is a text; want a model file",
		"predict -in m.csv -domain two.csv -out two.csv -model " + model: "-domain: cannot write two.csv: another output has that name",
		"predict -in m.csv -domain m.csv -out w.csv -model " + model:     "-domain: cannot write m.csv: it is the input m.csv",
		"search -in m.csv -query C -out h.csv -page page.html":           "-page: cannot write page.html: it is a folder",
		"train -in renamed -out trained":                                 "it holds T_A.txt: has it been renamed from T?",
		"embed -in . -out m.csv":                                         "-in .: the folder has no tables of TUDataset",
		"embed -in m.csv.shard-0-of-2 -format csv -out m.csv -shard 0/2": "-out: cannot write m.csv.shard-0-of-2: it is the input",
	} {
		_, _, err := invoke(t.Context(), line)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nsays %v\nwant %s", line, err, want)
		}
	}
}

// TestUnderstood: what is meant without doubt is taken, and said.
func TestUnderstood(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	write(t, "odd.csv", "name,mol,y\na,CCO,1\nb,CCC,2\nc,C(,3\n")
	stdout, stderr, err := invoke(t.Context(), "embed -in odd.csv -id name -features descriptors -out v.csv")
	if err != nil || !strings.Contains(stderr, "SMILES mol") || !strings.Contains(stdout, "2 rows") {
		t.Errorf("%s%s%v", stdout, stderr, err)
	}
	if rows := readCSV(t, "v.csv"); len(rows) != 3 || rows[1][0] != "a" {
		t.Errorf("%q", rows)
	}
	stdout = must(t, "finetune -in m.csv -target length -epochs 1 -seeds 2 -out run"+few+tiny)
	if want := "next: specmatch predict -in FILE -model run -out predictions.csv\n"; !strings.HasSuffix(stdout, want) {
		t.Errorf("ends with %q", stdout)
	}
	stdout = must(t, "finetune -in m.csv -target length -out a,b"+quick)
	if want := "next: specmatch predict -in FILE -model '\"a,b\"' -out predictions.csv\n"; !strings.HasSuffix(stdout, want) {
		t.Errorf("ends with %q", stdout)
	}
	must(t, `predict -in m.csv -model "a,b" -out p.csv`)
	write(t, "odd.csv", "name,mol,y\n"+strings.Repeat("a,CCO,1\nb,CCC,2\nc,CCCC,3\n", 10))
	stdout, stderr, err = invoke(t.Context(), "finetune odd.csv only -id name -epochs 1 -seeds 1"+few+tiny)
	if err != nil || !strings.Contains(stderr, "odd.csv: -target y, the only column that it can be\n") {
		t.Errorf("%s%s%v", stdout, stderr, err)
	}
	write(t, "tested.csv", "smiles,y,z,part\n"+strings.Repeat("CCO,1.5,,train\nCCC,2,,train\nCCCC,3,,valid\nCCN,4,5.5,test\n", 5))
	stdout, stderr, err = invoke(t.Context(), "finetune -in tested.csv -target y,z -split part -epochs 1 -seeds 2 -out tested"+few+tiny)
	note := `the target "z" has no training record with a label in 2 of 2 splits, which learn nothing of it`
	if err != nil || !strings.Contains(stderr, "tested.csv: "+note+"\n") || !strings.Contains(stdout, note) {
		t.Errorf("%s%s%v", stdout, stderr, err)
	}
	write(t, "a-b.csv", "smiles,y\n"+strings.Repeat("CCO,a\nCCC,b\nCCCC,a\nCCN,b\n", 5))
	write(t, "c.csv", "smiles,y\nOCC,a\nCCCN,c\n")
	line := "finetune -in a-b.csv -test c.csv -target y -epochs 1 -seeds 2 -out unseen" + few + tiny
	_, stderr, err = invoke(t.Context(), line)
	for _, want := range []string{
		`a-b.csv: the class "c" is to be predicted without a training record in 2 of 2 splits`,
		"a-b.csv: test molecules that also occur in the validation set, on which epochs, shares and intervals are chosen: 0, 1\n",
		"of training for 2 fits of up to 1 epochs; patience may stop them earlier; the linear models and the forests",
	} {
		if err != nil || !strings.Contains(stderr, want) {
			t.Errorf("%q, %v; want %s", stderr, err, want)
		}
	}
	write(t, "twice.csv", "smiles,key\nCCO,a\nCCC,b\nCCN,a\n")
	must(t, "embed twice.csv t.csv -features descriptors")
	_, stderr, err = invoke(t.Context(), "embed -id key twice.csv -features descriptors t.csv")
	for _, want := range []string{
		`twice.csv: 1 records have the id of an earlier one, such as "a"`, "t.csv: replaces an earlier file",
	} {
		if err != nil || !strings.Contains(stderr, want) {
			t.Errorf("%q, %v; want %s", stderr, err, want)
		}
	}
	must(t, "predict -in m.csv -model run -out a.csv")
	must(t, "predict -in m.csv -model run/model-0.safetensors,run/model-1.safetensors -out b.csv")
	if read(t, "a.csv") != read(t, "b.csv") {
		t.Error("a run directory is not its models")
	}
	for _, version := range []string{"version", "-version", "--version"} {
		if text := must(t, version); !strings.HasPrefix(text, "specmatch ") {
			t.Errorf("%s: %s", version, text)
		}
	}
}
