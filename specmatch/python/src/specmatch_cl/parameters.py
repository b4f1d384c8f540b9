"""Parameters of the estimators: the flags of the program, and a few more.

Generated from the flags: go test ./specmatch/cmd/specmatch -run TestPythonParameters -update
"""
from collections.abc import Sequence

from .tool import Seed, Source

FLAGS: dict[str, tuple[str, ...]] = {
    "embed": (
        "backend",
        "bf16",
        "features",
        "ignore",
        "largest_fragment",
        "memory",
        "neutralise",
        "precision",
        "readout",
        "tf32",
    ),
    "train": (
        "adjacency",
        "anneal",
        "atoms",
        "backend",
        "batch",
        "beta",
        "bf16",
        "center",
        "cuco_inverted",
        "descriptors_weight",
        "epochs",
        "graphcl_code",
        "hidden",
        "ignore",
        "joao_gamma",
        "joao_heads_by_epoch",
        "joao_probe_moves",
        "kappa",
        "largest_fragment",
        "layers",
        "lr",
        "morgan",
        "mssgcl_global",
        "mssgcl_local",
        "neutralise",
        "node_features",
        "on_h",
        "own_recipes",
        "percentile",
        "policy",
        "precision",
        "random_walk",
        "ratio",
        "raw_statistics",
        "readout",
        "self_loops",
        "simgrace_eta",
        "simgrace_perturbed_rows",
        "sum",
        "targets",
        "task_minimum",
        "task_power",
        "tasks",
        "tau",
        "tf32",
        "theta_gradient",
        "warmup",
    ),
    "finetune": (
        "anonymous",
        "atoms",
        "average",
        "backend",
        "balanced",
        "batch",
        "bf16",
        "bounds",
        "dropout",
        "epochs",
        "features",
        "forest",
        "hidden",
        "ignore",
        "largest_fragment",
        "layers",
        "loss",
        "lr",
        "merge",
        "network",
        "neutralise",
        "node_features",
        "patience",
        "precision",
        "readout",
        "split",
        "target_scale",
        "target_weights",
        "tf32",
    ),
    "predict": (
        "backend",
        "bf16",
        "domain",
        "ignore",
        "largest_fragment",
        "neutralise",
        "precision",
        "tf32",
    ),
}

class Embedder:
    """Parameters, with their documentation."""

    def __init__(
        self,
        model: Source = None,
        *,
        method: str | None = None,
        handle_invalid: str = "error",
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: bool = False,
        adjacency: str | None = None,
        anneal: int | None = None,
        atoms: str | None = None,
        backend: str | None = None,
        batch: int | None = None,
        beta: float | str | None = None,
        bf16: bool | None = None,
        center: bool | None = None,
        cuco_inverted: bool | None = None,
        descriptors_weight: float | None = None,
        epochs: int | None = None,
        features: str | Sequence[str] | None = None,
        graphcl_code: bool | None = None,
        hidden: int | None = None,
        ignore: str | Sequence[str] | None = None,
        joao_gamma: float | None = None,
        joao_heads_by_epoch: bool | None = None,
        joao_probe_moves: bool | None = None,
        kappa: float | None = None,
        largest_fragment: bool | None = None,
        layers: int | None = None,
        lr: float | None = None,
        memory: int | None = None,
        morgan: int | None = None,
        mssgcl_global: float | None = None,
        mssgcl_local: float | None = None,
        neutralise: bool | None = None,
        node_features: str | None = None,
        on_h: bool | None = None,
        own_recipes: bool | None = None,
        percentile: float | None = None,
        policy: str | None = None,
        precision: str | None = None,
        random_walk: bool | None = None,
        ratio: float | None = None,
        raw_statistics: bool | None = None,
        readout: str | None = None,
        self_loops: bool | None = None,
        simgrace_eta: float | None = None,
        simgrace_perturbed_rows: bool | None = None,
        sum: bool | None = None,
        targets: str | Sequence[str] | None = None,
        task_minimum: int | None = None,
        task_power: float | None = None,
        tasks: str | Sequence[str] | None = None,
        tau: float | None = None,
        tf32: bool | None = None,
        theta_gradient: bool | None = None,
        warmup: int | None = None,
    ) -> None:
        """None stands for the default of the program, which is named here; for molecules
        some differ, see ``specmatch train -h``.

        Parameters
        ----------
        model : str or None
            Model file; None and "pretrained" are the encoder of molecules in the program, "pretrained:NAME" is
            another one.
        method : str or None
            Method of specmatch train by which fit trains an encoder on its records; None is the model file as
            it is.
        handle_invalid : {"error", "nan", "drop"}
            What to do with a record that cannot be read: an error, a row of NaN, or no row. Unless it is
            "error", training skips such records.
        n_jobs : int, default all cores
            Threads.
        random_state : int, RandomState or Generator, default 0
            Seed of training.
        verbose : bool, default False
            Shows a bar where tqdm is installed.
        adjacency : str, default "sigmoid"
            Edge weights of the batch's similarity graph: sigmoid; spread (sigmoid with κ in units of the
            similarities' standard deviation); hard; ste (hard, with the gradient of sigmoid).
        anneal : int, default 0
            Number of epochs in which the learning rate falls to 0 along half a cosine, usually that of
            -epochs; 0: it stays.
        atoms : str, default "hu"
            Atom and bond features of a new encoder for molecules: hu or rich.
        backend : str, default "cpu"
            Compute engine: cpu; in builds with -tags cuda, also cuda, or cuda-3xtf32, which computes float32
            products on tensor cores at about the accuracy of float32.
        batch : int, default 128; 256 for molecules
            Batch size, at least 2; contrastive losses use the other graphs of a batch as negatives.
        beta : float or str, default "0.05"
            Weight β of the Laplacian loss in L_C + β·L_G: a number, or auto:R to keep the ratio of the two
            gradients' norms at R, such as auto:0.2.
        bf16 : bool, default False
            Let cpu round the inputs of float32 products to bfloat16 (7 mantissa bits), for speed; needs a
            processor with AVX512_BF16.
        center : bool, default False
            Subtract the batch's mean embedding before L_G.
        cuco_inverted : bool, default False
            Keep only a tenth of the nodes in CuCo's view, as in its code.
        descriptors_weight : float, default 1
            Weight of the loss of descriptors (and Morgan counts, -morgan) next to that of assays; 0 is none.
        epochs : int, default 20
            Number of training epochs.
        features : str or list of str, default "encoder"
            Features A,B of molecules to concatenate into a vector: encoder, pretrained[:NAME], descriptors,
            rdkit, crippen, morgan[:RADIUS[:SIZE]] or bits[:RADIUS[:SIZE]], that is the 52 descriptors,
            Crippen's logP and MR, and Morgan counts or bits as in RDKit (2:2048 by default).
        graphcl_code : bool, default False
            Use the augmentations, batch order and self-loops of GraphCL's code, whose self-loops, and thus
            vectors, depend on how nodes are numbered; false: the intended augmentations and reshuffled batches
            of the other methods.
        hidden : int, default 32; 300 for molecules
            Hidden width of a new encoder.
        ignore : str or list of str
            Columns or keys A,B to skip although their names look like part of a graph, such as weight.
        joao_gamma : float, default 0.1
            Strength γ of the pull of JOAO's distribution over augmentations to the uniform one.
        joao_heads_by_epoch : bool, default False
            Draw JOAOv2's projection heads once per epoch for all graphs, as in its code; false: use the heads
            of each graph's augmentations.
        joao_probe_moves : bool, default False
            Let the measurement of JOAO's augmentations update the running statistics, as in its code.
        kappa : float, default 10
            Sharpness κ of the soft adjacency σ(κ(S-θ)).
        largest_fragment : bool, default False
            Keep only the largest fragment of a molecule, preferring organic ones; this removes counter-ions.
        layers : int, default 3; 5 for molecules
            Number of layers of a new encoder.
        lr : float, default 0.01; 0.001 for molecules
            Learning rate of Adam.
        memory : int, default 320
            MB of memory for the cache of atom environments of all workers, which speeds up molecules; by
            default at most a quarter of the memory that the process can have.
        morgan : int, default 0
            Number of folded Morgan counts that are predicted next to descriptors; 0 is none.
        mssgcl_global : float, default 0
            Fraction of the nodes in MSSGCL's global views; if this and -mssgcl-local are 0, -policy determines
            both.
        mssgcl_local : float, default 0
            Fraction of the nodes in MSSGCL's local views.
        neutralise : bool, default False
            Neutralise charges that hydrogens can balance, such as those of acids and amines.
        node_features : str, default "auto"
            Node features of a new encoder for graphs: auto (the labels and attributes of the file) or degrees
            (where the file has neither).
        on_h : bool, default False
            Apply L_G to the encoder's output h instead of the projection z.
        own_recipes : bool, default True; False with epochs, lr or layers
            Methods whose papers train otherwise do so (InfoGraph: lr 0.001; GraphMAE: lr 0.0005, 20 epochs, 5
            layers; JOAOv2: lr 0.001, 40 epochs; SimGRACE: 5 layers; MSSGCL: lr 0.005, 80 epochs, 5 layers;
            CuCo: 5 layers); false: all train alike.
        percentile : float, default 80
            Percentile of a batch's similarities above which two graphs have an edge.
        policy : str, default "auto"; random2 for molecules
            Augmentations to draw from for each graph and view: auto (depends on the data set), random2,
            random3, random4, or a list of dropN, permE, maskN, subgraph.
        precision : str, default "float32"
            Floating-point format of the engine: float32 or float64.
        random_walk : bool, default False
            Use random-walk Laplacians I - D⁻¹A instead of symmetric ones.
        ratio : float, default 0.2
            Fraction of nodes or edges that an augmentation changes, above 0.
        raw_statistics : bool, default False
            Take batch norm's running statistics, which embeddings use, from raw graphs instead of views;
            MSSGCL always does.
        readout : str, default "auto"
            Readout LAYERS:KINDS of the vectors, such as all:sum,mean,max, last:sum or 1,3:max: the layers to
            read and how to pool their nodes; own is the encoder's readout; auto is the readout in the model
            file, or else all:sum,mean,max for molecules and own for graphs.
        self_loops : bool, default False
            Add a self-loop to every node, in raw graphs and in views, as the codes of JOAO, SimGRACE, MSSGCL
            and CuCo do.
        simgrace_eta : float, default 1; 0.1 for molecules
            Strength η of SimGRACE's noise, in standard deviations of each weight matrix.
        simgrace_perturbed_rows : bool, default False
            Take SimGRACE's anchors from the perturbed encoder, as in its unsupervised code; false: from the
            clean encoder.
        sum : bool, default False
            Sum L_C over the batch, as in the paper, instead of averaging it.
        targets : str or list of str
            Tables A,B of labels for -method assays, with gaps: a column of the molecules and one a task, or
            long form with the columns task and value; molecules are known by -id, or else by the text of their
            SMILES.
        task_minimum : int, default 10
            Number of labels that a task of assays needs; tasks with fewer, or with equal labels, are dropped.
        task_power : float, default 0.5
            Power p: a task with n labels weighs n^p in the loss of assays; 1: all labels weigh alike, 0: all
            tasks.
        tasks : str or list of str
            Names of the tasks of -targets; by default all columns, or all tasks of the long form.
        tau : float, default 0.2; 0.1 for molecules
            Temperature τ of the contrastive loss.
        tf32 : bool, default False
            Let cuda round the inputs of float32 products to TF32 (10 mantissa bits), for speed.
        theta_gradient : bool, default False
            Let the gradient flow through the threshold θ.
        warmup : int, default 0
            Number of steps over which β grows linearly from 0.
        """
        self.model = model
        self.method = method
        self.handle_invalid = handle_invalid
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.adjacency = adjacency
        self.anneal = anneal
        self.atoms = atoms
        self.backend = backend
        self.batch = batch
        self.beta = beta
        self.bf16 = bf16
        self.center = center
        self.cuco_inverted = cuco_inverted
        self.descriptors_weight = descriptors_weight
        self.epochs = epochs
        self.features = features
        self.graphcl_code = graphcl_code
        self.hidden = hidden
        self.ignore = ignore
        self.joao_gamma = joao_gamma
        self.joao_heads_by_epoch = joao_heads_by_epoch
        self.joao_probe_moves = joao_probe_moves
        self.kappa = kappa
        self.largest_fragment = largest_fragment
        self.layers = layers
        self.lr = lr
        self.memory = memory
        self.morgan = morgan
        self.mssgcl_global = mssgcl_global
        self.mssgcl_local = mssgcl_local
        self.neutralise = neutralise
        self.node_features = node_features
        self.on_h = on_h
        self.own_recipes = own_recipes
        self.percentile = percentile
        self.policy = policy
        self.precision = precision
        self.random_walk = random_walk
        self.ratio = ratio
        self.raw_statistics = raw_statistics
        self.readout = readout
        self.self_loops = self_loops
        self.simgrace_eta = simgrace_eta
        self.simgrace_perturbed_rows = simgrace_perturbed_rows
        self.sum = sum
        self.targets = targets
        self.task_minimum = task_minimum
        self.task_power = task_power
        self.tasks = tasks
        self.tau = tau
        self.tf32 = tf32
        self.theta_gradient = theta_gradient
        self.warmup = warmup


class Predictor:
    """Parameters, with their documentation."""

    def __init__(
        self,
        model: Source = None,
        *,
        n_estimators: int = 1,
        handle_invalid: str = "error",
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: bool = False,
        anonymous: bool | None = None,
        atoms: str | None = None,
        average: float | None = None,
        backend: str | None = None,
        balanced: bool | None = None,
        batch: int | None = None,
        bf16: bool | None = None,
        bounds: bool | None = None,
        dropout: float | None = None,
        epochs: int | None = None,
        features: str | Sequence[str] | None = None,
        forest: int | None = None,
        hidden: int | None = None,
        ignore: str | Sequence[str] | None = None,
        largest_fragment: bool | None = None,
        layers: int | None = None,
        loss: str | Sequence[str] | None = None,
        lr: float | None = None,
        merge: str | None = None,
        network: bool | None = None,
        neutralise: bool | None = None,
        node_features: str | None = None,
        patience: int | None = None,
        precision: str | None = None,
        readout: str | None = None,
        split: str | None = None,
        target_scale: str | None = None,
        target_weights: str | Sequence[str] | None = None,
        tf32: bool | None = None,
    ) -> None:
        """None stands for the default of the program, which is named here; for molecules
        some differ, see ``specmatch train -h``.

        Parameters
        ----------
        model : str or None
            Model file whose encoder to start from, or "pretrained"; None is random weights.
        n_estimators : int, default 1
            Models, with consecutive seeds, whose mean is predicted.
        handle_invalid : {"error", "nan", "drop", "prior"}
            What to do with a record that cannot be read: an error, a row of NaN, no row, or the mean or the
            frequencies of the classes in training. Unless it is "error", training skips such records.
        n_jobs : int, default all cores
            Threads.
        random_state : int, RandomState or Generator, default 0
            Seed of training.
        verbose : bool, default False
            Shows a bar where tqdm is installed.
        anonymous : bool, default False
            Keep the training molecules and their targets out of the model files, which predict -domain needs.
        atoms : str, default "rich"
            Atom and bond features of a new encoder for molecules: hu or rich.
        average : float, default 0.99
            Decay of the moving average of the weights, which is evaluated and kept; 0 keeps the weights of
            single steps.
        backend : str, default "cpu"
            Compute engine: cpu; in builds with -tags cuda, also cuda, or cuda-3xtf32, which computes float32
            products on tensor cores at about the accuracy of float32.
        balanced : bool, default False
            Weigh the loss so that all classes count alike, however rare.
        batch : int, default 32
            Batch size, at least 2; contrastive losses use the other graphs of a batch as negatives.
        bf16 : bool, default False
            Let cpu round the inputs of float32 products to bfloat16 (7 mantissa bits), for speed; needs a
            processor with AVX512_BF16.
        bounds : bool, default False
            Accept targets such as >10 and <=0.5 as bounds: a prediction beyond one has no loss, and metrics
            skip them; otherwise they are refused.
        dropout : float, default 0.1
            Probability of dropout, for molecules.
        epochs : int, default 100; 1 with network=False
            Number of training epochs.
        features : str or list of str
            Features A,B of molecules that the head sees next to the encoder's vector: encoder,
            pretrained[:NAME], descriptors, rdkit, crippen, morgan[:RADIUS[:SIZE]] or bits[:RADIUS[:SIZE]]; by
            default descriptors,morgan,pretrained; encoder alone uses none of them, and auto picks a set by the
            errors of forests on the validation sets.
        forest : int, default 100
            Trees of the random forest on descriptors and fingerprints that takes part in predictions for
            molecules; 0 leaves it out.
        hidden : int, default 64; 16 with network=False; 128 for molecules
            Hidden width of a new encoder.
        ignore : str or list of str
            Columns or keys A,B to skip although their names look like part of a graph, such as weight.
        largest_fragment : bool, default False
            Keep only the largest fragment of a molecule, preferring organic ones; this removes counter-ions.
        layers : int, default 3; 2 with network=False; 4 for molecules
            Number of layers of a new encoder.
        loss : str or list of str, default "squared"
            Loss of regression: the squared or the absolute error, and NAME=LOSS for single targets, such as
            absolute,logd=squared.
        lr : float, default 0.001; 0.0003 for molecules
            Learning rate of Adam.
        merge : str, default "none"
            Rule for the records of one molecule or graph within a part: their mean or median label (of
            classes, the most frequent one), or drop those whose labels differ; none keeps all records.
        network : bool, default True
            Let a network take part in predictions for molecules; false fits a linear model and a forest alone,
            in seconds and into a file that packs to a tenth.
        neutralise : bool, default False
            Neutralise charges that hydrogens can balance, such as those of acids and amines.
        node_features : str, default "degrees"
            Node features of a new encoder for graphs: auto (the labels and attributes of the file) or degrees
            (where the file has neither).
        patience : int, default 20
            Epochs without an improvement on the validation set after which training stops; the weights of the
            best epoch are kept.
        precision : str, default "float32"
            Floating-point format of the engine: float32 or float64.
        readout : str, default "auto"
            Readout of a graph's vector from its nodes: mean or sum over the atoms of a molecule (the sum knows
            how many there are), or LAYERS:KINDS, such as all:sum,mean,max or last:max; auto is sum for
            regression on molecules, mean for their classes, and for graphs the readout of the encoder.
        split : str, default "auto"
            Split of the records: random, stratified (every class in each part), scaffold (as in the
            literature), stratified-scaffold or cluster (whole clusters of similar molecules in a part), into
            80, 10 and 10 %; auto is random for regression and stratified otherwise.
        target_scale : str, default "auto"
            Scale on which targets are fitted: auto, plain, log (-log) or LOW,HIGH (-range LOW,HIGH), their
            log-odds between two ends, such as 0,100 for per cent; auto takes logarithms of positive targets
            over decades, if they fit the validation sets better. Predictions are in the unit of the targets.
        target_weights : str or list of str
            Weights NAME=W,... of single targets in the loss, 1 for others, such as alike,logd=2; with alike,
            rare targets count as much as others, and without it every label does.
        tf32 : bool, default False
            Let cuda round the inputs of float32 products to TF32 (10 mantissa bits), for speed.
        """
        self.model = model
        self.n_estimators = n_estimators
        self.handle_invalid = handle_invalid
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.anonymous = anonymous
        self.atoms = atoms
        self.average = average
        self.backend = backend
        self.balanced = balanced
        self.batch = batch
        self.bf16 = bf16
        self.bounds = bounds
        self.dropout = dropout
        self.epochs = epochs
        self.features = features
        self.forest = forest
        self.hidden = hidden
        self.ignore = ignore
        self.largest_fragment = largest_fragment
        self.layers = layers
        self.loss = loss
        self.lr = lr
        self.merge = merge
        self.network = network
        self.neutralise = neutralise
        self.node_features = node_features
        self.patience = patience
        self.precision = precision
        self.readout = readout
        self.split = split
        self.target_scale = target_scale
        self.target_weights = target_weights
        self.tf32 = tf32
