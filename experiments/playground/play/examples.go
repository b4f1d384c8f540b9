package play

// Example is an expression with values that suit it. Values stay away from kinks, where
// a gradient and a central difference may differ.
type Example struct {
	Title   string `json:"title"`
	Text    string `json:"text"`
	X, W, B string
	Rate    float64 `json:"rate"` // of the descent
}

const (
	points        = "0.9 -0.4 0.3\n-0.7 0.8 0.5\n0.2 0.6 -1.1\n-0.5 -0.9 0.7"
	weights       = "0.6 -0.8 0.2\n0.5 0.3 -0.7\n-0.4 0.9 0.1"
	twoViewsOfTwo = "1.0 0.3\n-0.4 0.9\n0.8 0.7\n-0.9 0.5"
)

// Examples are the expressions that the page offers.
var Examples = []Example{
	{"A layer", "x.MatMul(w).AddRow(b).ReLU().Sum()", points, weights, "0.1 0.2 -0.3", 0.05},
	{
		"Least squares", "x.MatMul(w).Sub(b).Square().Mean()", points, "0.5\n-0.2\n0.8",
		"1.2\n-0.7\n0.4\n-0.1", 0.2,
	},
	{
		"Logistic regression",
		"y := x.MatMul(w).AddScalar(b)\ny.Softplus().Mean()",
		points,
		"0.5\n-0.2\n0.8",
		"0.3",
		0.5,
	},
	{
		"Cross-entropy",
		"x.MatMul(w).LogSoftmax().Mul(b).Sum().Scale(-1/4)",
		points,
		weights,
		"1 0 0\n0 1 0\n0 0 1\n1 0 0",
		0.5,
	},
	{"A variable used twice", "h := x.MatMul(w)\nh.Mul(h.Tanh()).Sum()", points, weights, "0", 0.1},
	{
		"Attention",
		"a := x.MatMulT(x).Softmax()\na.MatMul(x.MatMul(w)).Square().Sum()",
		points,
		weights,
		"0",
		0.2,
	},
	{
		"Batch norm, spelled out",
		"c := x.SubRow(x.ColSums().Scale(1/4))\n" +
			"r := c.Square().ColSums().Scale(1/4).Shift(1e-5).InvSqrt()\n" +
			"c.MulRow(r).MulRow(w).AddRow(b).Square().Sum()",
		points,
		"1.2 0.8 -0.6",
		"0.1 -0.3 0.2",
		0.02,
	},
	{
		"A message-passing layer",
		"b.MatMul(x).Add(x).MatMul(w).ReLU().Sum()",
		points,
		weights,
		"0 1 0 1\n1 0 1 0\n0 1 0 0\n1 0 0 0",
		0.02,
	},
	{
		"NT-Xent of four points",
		"u := x.L2Normalize()\n" +
			"s := u.MatMulT(u).Scale(1/0.5).FillDiagonal(-99)\n" +
			"p := u.SliceRows(0, 2).Dot(u.SliceRows(2, 4)).Scale(2/0.5)\n" +
			"s.LogSumExp().Sum().Sub(p).Scale(1/4)",
		twoViewsOfTwo,
		"0",
		"0",
		0.5,
	},
	{
		"A similarity graph's Laplacian",
		"e := x.L2Normalize()\n" +
			"s := e.MatMulT(e)\n" +
			"a := s.SubScalar(s.Detach().UpperPercentile(60)).Scale(5).Sigmoid().FillDiagonal(0)\n" +
			"r := a.RowSums().InvSqrt()\n" +
			"m := a.MulCol(r).MulRow(r.T())\n" +
			"m.Dot(m)",
		points,
		"0",
		"0",
		0.5,
	},
}
