package play

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"math"
	"reflect"
	"strconv"

	"github.com/specmatch/specmatch/autodiff"
)

type variable = autodiff.Var

// operators are those of [autodiff.Var] that take matrices and numbers: what an
// expression may call. Nothing else can be reached from one.
var operators = map[string]any{
	"Abs":             (*variable).Abs,
	"Add":             (*variable).Add,
	"AddCol":          (*variable).AddCol,
	"AddRow":          (*variable).AddRow,
	"AddRowReLU":      (*variable).AddRowReLU,
	"AddScalar":       (*variable).AddScalar,
	"ColSums":         (*variable).ColSums,
	"ConcatCols":      autodiff.ConcatCols,
	"ConcatRows":      autodiff.ConcatRows,
	"Detach":          (*variable).Detach,
	"Div":             (*variable).Div,
	"DivCol":          (*variable).DivCol,
	"DivRow":          (*variable).DivRow,
	"DivScalar":       (*variable).DivScalar,
	"Dot":             (*variable).Dot,
	"Exp":             (*variable).Exp,
	"FillDiagonal":    (*variable).FillDiagonal,
	"Greater":         (*variable).Greater,
	"InvSqrt":         (*variable).InvSqrt,
	"L2Normalize":     (*variable).L2Normalize,
	"Log":             (*variable).Log,
	"LogSoftmax":      (*variable).LogSoftmax,
	"LogSumExp":       (*variable).LogSumExp,
	"MatMul":          (*variable).MatMul,
	"MatMulT":         (*variable).MatMulT,
	"Mean":            (*variable).Mean,
	"Mul":             (*variable).Mul,
	"MulCol":          (*variable).MulCol,
	"MulRow":          (*variable).MulRow,
	"MulScalar":       (*variable).MulScalar,
	"ReLU":            (*variable).ReLU,
	"RowSums":         (*variable).RowSums,
	"Scale":           (*variable).Scale,
	"Shift":           (*variable).Shift,
	"Sigmoid":         (*variable).Sigmoid,
	"SliceCols":       (*variable).SliceCols,
	"SliceRows":       (*variable).SliceRows,
	"Softmax":         (*variable).Softmax,
	"Softplus":        (*variable).Softplus,
	"Sqrt":            (*variable).Sqrt,
	"Square":          (*variable).Square,
	"Sub":             (*variable).Sub,
	"SubCol":          (*variable).SubCol,
	"SubRow":          (*variable).SubRow,
	"SubScalar":       (*variable).SubScalar,
	"Sum":             (*variable).Sum,
	"T":               (*variable).T,
	"TMatMul":         (*variable).TMatMul,
	"Tanh":            (*variable).Tanh,
	"UpperPercentile": (*variable).UpperPercentile,
}

// Inputs are the names that an expression may use, in the order of [Program.Run]'s
// values.
var Inputs = [...]string{"x", "w", "b"}

// Limits of an expression, so that none can fill the memory.
const (
	maxCalls = 64
	maxSide  = 64 // rows and columns of a value
	maxText  = 2000
)

// Error is a mistake in an expression, at a line and a column of it, both from 1.
type Error struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// Program is an expression that was understood: a list of calls, each of which makes
// one variable. Those of the inputs come first.
type Program struct{ calls []call }

type call struct {
	op     string
	args   []arg  // the receiver first
	at     Error  // where it stands, without a message
	symbol string // of an input
}

// arg is the variable of an earlier call, or a number.
type arg struct {
	ref    int
	number *float64
}

// Parse reads lines of the form "name := expression" and a last expression, in Go's
// syntax. The error is an [Error].
func Parse(text string) (*Program, error) {
	if len(text) > maxText {
		return nil, &Error{1, 1, fmt.Sprintf("the expression has more than %d bytes", maxText)}
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(
		set, "", "package p; func _() {\n"+text+"\n}", parser.SkipObjectResolution,
	)
	c := &compiler{set: set, Program: new(Program), names: map[string]int{}}
	var list scanner.ErrorList
	if errors.As(err, &list) {
		return nil, &Error{max(list[0].Pos.Line-1, 1), list[0].Pos.Column, list[0].Msg}
	}
	if len(file.Decls) != 1 {
		return nil, &Error{1, 1, "want an expression"}
	}
	body := file.Decls[0].(*ast.FuncDecl).Body
	for i, name := range Inputs {
		c.names[name] = i
		c.calls = append(c.calls, call{op: "Leaf", symbol: name})
	}
	if err := c.statements(body); err != nil {
		return nil, err
	}
	return c.Program, nil
}

type compiler struct {
	set *token.FileSet
	*Program
	names map[string]int
}

func (c *compiler) statements(body *ast.BlockStmt) error {
	if len(body.List) == 0 {
		return &Error{1, 1, "want an expression, such as x.MatMul(w).Sum()"}
	}
	for i, s := range body.List {
		isResult := i == len(body.List)-1
		switch s := s.(type) {
		case *ast.AssignStmt:
			name, ok := s.Lhs[0].(*ast.Ident)
			if !ok || len(s.Lhs) != 1 || len(s.Rhs) != 1 || s.Tok != token.DEFINE {
				return c.fail(s.Pos(), "want name := expression")
			}
			if _, taken := c.names[name.Name]; taken {
				return c.fail(s.Pos(), name.Name+" is taken")
			}
			v, err := c.variable(s.Rhs[0])
			if err != nil {
				return err
			}
			c.names[name.Name] = v
			if isResult {
				return c.fail(s.Pos(), "the last line must be an expression")
			}
		case *ast.ExprStmt:
			if !isResult {
				return c.fail(s.Pos(), "its value is not used: want name := expression")
			}
			v, err := c.variable(s.X)
			if err == nil && (v != len(c.calls)-1 || v < len(Inputs)) {
				return c.fail(s.Pos(), "the last line must call an operator")
			}
			return err
		default:
			return c.fail(s.Pos(), "want an expression, or name := expression")
		}
	}
	return nil
}

func (c *compiler) fail(at token.Pos, message string) error {
	e := c.position(at)
	e.Message = message
	return &e
}

func (c *compiler) position(at token.Pos) Error {
	p := c.set.Position(at)
	return Error{Line: p.Line - 1, Column: p.Column}
}

// variable compiles an expression that stands for a matrix, and returns its call.
func (c *compiler) variable(e ast.Expr) (int, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.variable(e.X)
	case *ast.Ident:
		if v, ok := c.names[e.Name]; ok {
			return v, nil
		}
		return 0, c.fail(e.Pos(), fmt.Sprintf("%s is unknown: there are x, w, b and names given above",
			e.Name))
	case *ast.CallExpr:
		concat := func(name string) bool {
			return name == "ConcatCols" || name == "ConcatRows"
		}
		switch f := e.Fun.(type) {
		case *ast.SelectorExpr:
			if concat(f.Sel.Name) {
				return 0, c.fail(f.Sel.Pos(), f.Sel.Name+" is a function: "+f.Sel.Name+"(x, w)")
			}
			return c.call(f.Sel, append([]ast.Expr{f.X}, e.Args...), e)
		case *ast.Ident:
			if concat(f.Name) {
				return c.call(f, e.Args, e)
			}
			return 0, c.fail(f.Pos(), fmt.Sprintf("%s is not a function; operators are called as in x.Sum()",
				f.Name))
		}
	case *ast.SelectorExpr:
		if _, ok := operators[e.Sel.Name]; ok {
			return 0, c.fail(e.Sel.Pos(), e.Sel.Name+" is not called: write "+e.Sel.Name+"()")
		}
		return 0, c.fail(e.Sel.Pos(), e.Sel.Name+" is no operator")
	case *ast.BinaryExpr:
		return 0, c.fail(e.OpPos, fmt.Sprintf(
			"matrices have no %s: there are Add, Sub, Mul (elementwise), MatMul, Div",
			e.Op,
		))
	}
	return 0, c.fail(e.Pos(), "want a matrix")
}

func (c *compiler) call(name *ast.Ident, args []ast.Expr, whole *ast.CallExpr) (int, error) {
	f, ok := operators[name.Name]
	if !ok {
		// The receiver is wrong before the operator is.
		if _, err := c.variable(args[0]); err != nil {
			return 0, err
		}
		return 0, c.fail(name.Pos(), name.Name+" is no operator of a matrix")
	}
	t := reflect.TypeOf(f)
	if !t.IsVariadic() && len(args) != t.NumIn() {
		return 0, c.fail(name.Pos(), fmt.Sprintf("%s takes %d arguments, not %d",
			name.Name, t.NumIn()-1, len(args)-1))
	}
	if len(args) == 0 {
		return 0, c.fail(whole.Rparen, name.Name+" of nothing")
	}
	k := call{op: name.Name, at: c.position(name.Pos())}
	for i, e := range args {
		switch parameter := t.In(min(i, t.NumIn()-1)); parameter.Kind() {
		case reflect.Float64, reflect.Int:
			v, err := c.number(e, parameter.Kind() == reflect.Int)
			if err != nil {
				return 0, err
			}
			k.args = append(k.args, arg{number: &v})
		default:
			v, err := c.variable(e)
			if err != nil {
				return 0, err
			}
			k.args = append(k.args, arg{ref: v})
		}
	}
	if len(c.calls) >= maxCalls {
		return 0, c.fail(name.Pos(), fmt.Sprintf("more than %d operators", maxCalls))
	}
	// Three operators are chains of others and have no entry of their own.
	then := func(op string, args ...arg) arg {
		c.calls = append(c.calls, call{op: op, args: args, at: k.at})
		return arg{ref: len(c.calls) - 1}
	}
	switch x := k.args[0]; name.Name {
	case "Mean":
		return then("Scale", then("Sum", x), arg{ref: mean}).ref, nil
	case "LogSoftmax":
		return then("SubCol", x, then("LogSumExp", x)).ref, nil
	case "Softmax":
		return then("Exp", then("SubCol", x, then("LogSumExp", x))).ref, nil
	}
	return then(k.op, k.args...).ref, nil
}

// mean stands for a number that is known when shapes are: 1 over the size of the matrix
// that was summed.
const mean = -1

func (c *compiler) number(e ast.Expr, whole bool) (float64, error) {
	v := value(e)
	switch {
	case math.IsNaN(v):
		return 0, c.fail(e.Pos(), "want a number")
	case whole && v != math.Trunc(v):
		return 0, c.fail(e.Pos(), "want a whole number")
	case whole && (v < 0 || v > maxSide):
		return 0, c.fail(e.Pos(), fmt.Sprintf("want 0 to %d", maxSide))
	}
	return v, nil
}

// value returns NaN for what is no number.
func value(e ast.Expr) float64 {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return value(e.X)
	case *ast.BasicLit:
		if v, err := strconv.ParseFloat(e.Value, 64); err == nil {
			return v
		}
	case *ast.UnaryExpr:
		if e.Op == token.SUB {
			return -value(e.X)
		}
	case *ast.BinaryExpr:
		a, b := value(e.X), value(e.Y)
		switch e.Op {
		case token.ADD:
			return a + b
		case token.SUB:
			return a - b
		case token.MUL:
			return a * b
		case token.QUO:
			return a / b
		}
	}
	return math.NaN()
}

// Run evaluates the program on a tape, and returns the variable of every call; inputs
// that are not used are nil. leaf makes the variable of an input; after, unless nil, may
// replace one that was made. The error is an [Error].
func (p *Program) Run(
	leaf func(input int) *variable, after func(k int, v *variable) *variable,
) ([]*variable, error) {
	vars := make([]*variable, len(p.calls))
	used := p.used()
	for k := range p.calls {
		var err error
		switch {
		case k >= len(Inputs):
			vars[k], err = p.apply(k, vars)
		case used[k]:
			vars[k] = leaf(k)
		default:
			continue
		}
		if err != nil {
			return vars, err
		}
		if after != nil {
			vars[k] = after(k, vars[k])
		}
	}
	return vars, nil
}

// used says which calls others use.
func (p *Program) used() []bool {
	used := make([]bool, len(p.calls))
	for _, k := range p.calls {
		for _, a := range k.args {
			if a.number == nil && a.ref >= 0 {
				used[a.ref] = true
			}
		}
	}
	return used
}

func (p *Program) apply(k int, vars []*variable) (v *variable, err error) {
	c := &p.calls[k]
	fail := func(message string) error { return &Error{c.at.Line, c.at.Column, message} }
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error: // a shape's
			err = fail(r.Error())
		default:
			err = fail(fmt.Sprint(r))
		}
	}()
	f := reflect.ValueOf(operators[c.op])
	arguments := make([]reflect.Value, len(c.args))
	for i, a := range c.args {
		switch {
		case a.number != nil:
			arguments[i] = reflect.ValueOf(*a.number).Convert(f.Type().In(i))
		case a.ref == mean:
			arguments[i] = reflect.ValueOf(
				1 / float64(vars[p.calls[c.args[0].ref].args[0].ref].Value().Len()),
			)
		default:
			arguments[i] = reflect.ValueOf(vars[a.ref])
		}
	}
	v = f.Call(arguments)[0].Interface().(*variable)
	if v.Rows() > maxSide || v.Cols() > maxSide {
		return nil, fail(fmt.Sprintf("%s gives a matrix [%d×%d]; here they have up to %d rows and columns",
			c.op, v.Rows(), v.Cols(), maxSide))
	}
	return v, nil
}
