package gpt

// A single token reads every weight once, so its products are bound by memory:
// packing panels as the Multiplier does would touch everything twice. Rows are
// therefore multiplied in place, a block of columns a task.

// rowBlock is the number of columns, or of words, in a task.
const rowBlock = 512

// rowProduct is out = x*w + b for one row; w is (len(x), len(out)).
type rowProduct struct {
	out, x, w, b []float32
}

func (d *Decoder) linearRow(out, x []float32, w, b Param) {
	d.row = rowProduct{out: out, x: x, w: w.Data, b: b.Data}
	d.pool.Run((len(out)+rowBlock-1)/rowBlock, d.rowColumns)
}

// multiplyColumns sums in ascending order of x, each element by one chain of
// multiply-adds: the same bits as a product over several rows.
func (d *Decoder) multiplyColumns(_, task int) {
	p := &d.row
	n := len(p.out)
	from, to := task*rowBlock, min((task+1)*rowBlock, n)
	out := p.out[from:to]
	copy(out, p.b[from:to])
	for k, v := range p.x {
		d.set.AXPY(out, p.w[k*n+from:k*n+to], v)
	}
}

// headRow sets the logits of one row of the final norm's output.
func (d *Decoder) headRow(x []float32) {
	d.row = rowProduct{out: d.logits, x: x, w: d.m.params[wte].Data}
	d.pool.Run((len(d.logits)+rowBlock-1)/rowBlock, d.rowWords)
}

func (d *Decoder) multiplyWords(_, task int) {
	p := &d.row
	c := len(p.x)
	for v := task * rowBlock; v < min((task+1)*rowBlock, len(p.out)); v++ {
		p.out[v] = d.set.Dot(p.x, p.w[v*c:(v+1)*c])
	}
}
