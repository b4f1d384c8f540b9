// Package word2vec learns vectors for words and documents from the company that words
// keep, and makes such documents of graphs.
//
// The mental model: a word is a number, a document a row of them, and every position i
// of a document is a small classification problem. An input h is to predict the word
// w_i against a few words drawn at random (negative sampling), or along its path in a
// Huffman tree (hierarchical softmax):
//
//	ℓ = log σ(h·u_w) + Σ_{k words n ~ count^¾} log σ(−h·u_n)
//
//	[SkipGram]  h = v_c          for every word c within the window around i
//	[DBOW]      h = d            the document's own vector: PV-DBOW
//	[DM]        h = mean(d, v_c) over the words of the window: PV-DM
//
// Every update is a step of gradient ascent with a learning rate that falls linearly. On
// graphs, words are nodes or colors of subtrees:
//
//	graph2vec  DBOW on all WL colors of a graph          [Subtrees]
//	node2vec   SkipGram on random walks                 [Walks]
//	sub2vec    DM on one long walk per graph            [LongWalks]
//
// # Faithfulness
//
// Training is gensim 4's with one worker, to the rounding of float32: its table of σ
// with 1000 values between ±6, beyond which there is no update; its generator for
// negative samples; its batches of 10,000 words that share a rate. What gensim does
// silently is an option with a name here: [Config.TokenLimit]. Starting vectors, shrunk
// windows and the seeds of the generator do not come from NumPy's source, so that equal
// seeds do not mean equal vectors. A test shows that with gensim's draws the vectors are
// gensim's.
//
// # Invariants
//
// One goroutine trains, in the order of the documents, so that a seed and a corpus
// determine every bit on one kind of processor. Invalid input returns an error.
//
// # Sources
//
//   - T. Mikolov, I. Sutskever, K. Chen, G. Corrado, J. Dean: Distributed
//     representations of words and phrases and their compositionality. NIPS 2013.
//   - Q. Le, T. Mikolov: Distributed representations of sentences and documents. ICML
//     2014.
//   - R. Řehůřek, P. Sojka: gensim, version 4.4.0.
//   - A. Grover, J. Leskovec: node2vec: scalable feature learning for networks. KDD 2016.
//   - A. Narayanan et al.: graph2vec: learning distributed representations of graphs.
//     2017.
//   - B. Adhikari, Y. Zhang, N. Ramakrishnan, B. A. Prakash: Sub2Vec: feature learning
//     for subgraphs. PAKDD 2018.
package word2vec
