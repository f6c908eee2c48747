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
//
// An entrywise layout multiplies every entry of a column, Rows x 1, by the entries
// of its own row of a matrix, Rows x Cols. Inner and BlockInner are one. With
// p(i) the binary digits of i read in base three, and reach = 2 p(BlockRows-1) + 1:
//
//	left block   entry i at coefficient p(i)
//	right block  entry (i, k) at coefficient k*reach + p(i)
//	product      left i times right (i, k) at coefficient k*reach + 2 p(i)
//
// p(i) + p(j) has no carry, and so the digits of 2 p(h), zeros and twos, only where
// i = j = h: nothing else falls on a result. With BlockCols*reach <= N nothing wraps.
type Layout struct {
	Rows, Inner, Cols                int
	BlockRows, BlockInner, BlockCols int
	Entrywise                        bool
}

func (y Layout) check(r *Ring) error {
	sizes := []int{y.Rows, y.Inner, y.Cols, y.BlockRows, y.BlockInner, y.BlockCols}
	for _, size := range sizes {
		if size < 1 || size > 1<<24 {
			return fault.New(fault.Argument, "a layout of sizes %v makes no sense", sizes)
		}
	}
	if y.Entrywise && (y.Inner != 1 || y.BlockInner != 1) {
		return fault.New(fault.Argument, "a layout of sizes %v is not one of entries", sizes)
	}
	if y.BlockRows > r.N || y.BlockInner > r.N || y.BlockCols > r.N ||
		y.BlockRows*y.BlockInner*y.BlockCols > r.N || y.Entrywise && y.BlockCols*y.reach() > r.N {
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
func (y Layout) RightPolys() int { return y.rightBlocks() * y.colBlocks() }
func (y Layout) OutPolys() int   { return y.rowBlocks() * y.colBlocks() }

// rightRows is how many rows a right side has, rightBlocks into how many runs they are cut.
func (y Layout) rightRows() int {
	if y.Entrywise {
		return y.Rows
	}
	return y.Inner
}

func (y Layout) rightBlocks() int {
	if y.Entrywise {
		return y.rowBlocks()
	}
	return y.innerBlocks()
}

func (y Layout) rightSpan(block int) (from, to int) {
	if y.Entrywise {
		return span(block, y.BlockRows, y.Rows)
	}
	return span(block, y.BlockInner, y.Inner)
}

// firstRight is the first right block that meets a row of left blocks in a column.
func (y Layout) firstRight(rowBlock, colBlock int) int {
	if y.Entrywise {
		return rowBlock*y.colBlocks() + colBlock
	}
	return colBlock
}

// sameOutput tells whether products of both layouts may be added up.
func (y Layout) sameOutput(z Layout) bool {
	return y.Rows == z.Rows && y.Cols == z.Cols && y.Entrywise == z.Entrywise &&
		y.BlockRows == z.BlockRows && y.BlockInner == z.BlockInner && y.BlockCols == z.BlockCols
}

// sameLeft tells whether a left side encoded for z serves y: the number of columns is free.
func (y Layout) sameLeft(z Layout) bool {
	z.Cols = y.Cols
	return y == z
}

func (y Layout) left(i, j int) int {
	if y.Entrywise {
		return place3(i)
	}
	return i*y.BlockInner*y.BlockCols + y.BlockInner - 1 - j
}

func (y Layout) right(j, k int) int {
	if y.Entrywise {
		return k*y.reach() + place3(j)
	}
	return k*y.BlockInner + j
}

func (y Layout) out(i, k int) int {
	if y.Entrywise {
		return k*y.reach() + 2*place3(i)
	}
	return i*y.BlockInner*y.BlockCols + k*y.BlockInner + y.BlockInner - 1
}

// reach is how many coefficients one column of an entrywise block takes.
func (y Layout) reach() int { return 2*place3(y.BlockRows-1) + 1 }

// place3 reads the binary digits of i in base three.
func place3(i int) int {
	place := 0
	for power := 1; i > 0; i, power = i>>1, 3*power {
		place += i & 1 * power
	}
	return place
}

// span is the part [from, to) of a dimension that block number `block` covers.
func span(block, blockSize, size int) (from, to int) {
	return block * blockSize, min((block+1)*blockSize, size)
}
