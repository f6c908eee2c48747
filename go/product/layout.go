package product

import "atoll/core/fault"

// Layout says how a product of a Rows x Inner by an Inner x Cols matrix is cut
// into blocks that fit one polynomial each (the encoding of Cheetah and Iron).
// With block sizes a, b, c and a*b*c <= N:
//
//	left block   entry (i, j) at coefficient i*b*c + b-1-j
//	right block  entry (j, k) at coefficient k*b + j
//	product      inner product (i, k) at coefficient i*b*c + k*b + b-1
//
// All other coefficients of the product are sums that mean nothing.
type Layout struct {
	Rows, Inner, Cols                int
	BlockRows, BlockInner, BlockCols int
}

func (y Layout) check(r *Ring) error {
	sizes := []int{y.Rows, y.Inner, y.Cols, y.BlockRows, y.BlockInner, y.BlockCols}
	for _, size := range sizes {
		if size < 1 || size > 1<<24 {
			return fault.New(fault.Argument, "a layout of sizes %v makes no sense", sizes)
		}
	}
	if y.BlockRows > r.N || y.BlockInner > r.N || y.BlockCols > r.N ||
		y.BlockRows*y.BlockInner*y.BlockCols > r.N {
		return fault.New(fault.Argument, "blocks %d x %d x %d do not fit degree %d",
			y.BlockRows, y.BlockInner, y.BlockCols, r.N)
	}
	return nil
}

func ceilDiv(x, y int) int { return (x + y - 1) / y }

func (y Layout) rowBlocks() int   { return ceilDiv(y.Rows, y.BlockRows) }
func (y Layout) innerBlocks() int { return ceilDiv(y.Inner, y.BlockInner) }
func (y Layout) colBlocks() int   { return ceilDiv(y.Cols, y.BlockCols) }

// LeftPolys, RightPolys and OutPolys count the polynomials of either side.
func (y Layout) LeftPolys() int  { return y.rowBlocks() * y.innerBlocks() }
func (y Layout) RightPolys() int { return y.innerBlocks() * y.colBlocks() }
func (y Layout) OutPolys() int   { return y.rowBlocks() * y.colBlocks() }

// sameOutput tells whether products of both layouts may be added up.
func (y Layout) sameOutput(z Layout) bool {
	return y.Rows == z.Rows && y.Cols == z.Cols &&
		y.BlockRows == z.BlockRows && y.BlockInner == z.BlockInner && y.BlockCols == z.BlockCols
}

// sameLeft tells whether a left side encoded for z serves y: the number of columns is free.
func (y Layout) sameLeft(z Layout) bool {
	z.Cols = y.Cols
	return y == z
}

func (y Layout) left(i, j int) int  { return i*y.BlockInner*y.BlockCols + y.BlockInner - 1 - j }
func (y Layout) right(j, k int) int { return k*y.BlockInner + j }
func (y Layout) out(i, k int) int {
	return i*y.BlockInner*y.BlockCols + k*y.BlockInner + y.BlockInner - 1
}

// span is the part [from, to) of a dimension that block number `block` covers.
func span(block, blockSize, size int) (from, to int) {
	return block * blockSize, min((block+1)*blockSize, size)
}
