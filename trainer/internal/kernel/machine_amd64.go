package kernel

import "golang.org/x/sys/cpu"

func machineISAs() []ISA {
	var have []ISA
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		have = append(have, AVX2)
		if cpu.X86.HasAVX512F {
			have = append(have, AVX512)
		}
	}
	return have
}

// newSet fills the table for an instruction set of this machine.
func newSet(isa ISA) *Set {
	switch isa {
	case AVX2:
		return &Set{
			isa: isa, rows: 6, width: 16, half: 8,
			tiles: [2][]tileFunc{
				{nil, gemmTile256x1x1, gemmTile256x2x1, gemmTile256x3x1, gemmTile256x4x1, gemmTile256x5x1, gemmTile256x6x1},
				{nil, gemmTile256x1x2, gemmTile256x2x2, gemmTile256x3x2, gemmTile256x4x2, gemmTile256x5x2, gemmTile256x6x2},
			},
			packPanel: packRows256x2, packStrips: packStrips256, packTransposed: packTransposed8, prefetch: prefetchLines,
			add: add256, layerNorm: layerNorm256, addLayerNorm: addLayerNorm256, layerNormBackward: layerNormBackward256,
			geluTanh: geluTanh256, geluTanhBackward: geluTanhBackward256, geluErf: geluErf256, geluErfBackward: geluErfBackward256,
			softmax: softmax256, softmaxAgain: softmaxAgain256, softmaxBackward: softmaxBackward256,
			adamW: adamW256, sumSquares: sumSquares256, dropout: dropout256, columnSums: columnSums256, dot: dot256, axpy: axpy256, peak: fmaPeak256,
		}
	case AVX512:
		return &Set{
			isa: isa, rows: 12, width: 32, half: 16,
			tiles: [2][]tileFunc{
				{
					nil, gemmTile512x1x1, gemmTile512x2x1, gemmTile512x3x1, gemmTile512x4x1, gemmTile512x5x1, gemmTile512x6x1,
					gemmTile512x7x1, gemmTile512x8x1, gemmTile512x9x1, gemmTile512x10x1, gemmTile512x11x1, gemmTile512x12x1,
				},
				{
					nil, gemmTile512x1x2, gemmTile512x2x2, gemmTile512x3x2, gemmTile512x4x2, gemmTile512x5x2, gemmTile512x6x2,
					gemmTile512x7x2, gemmTile512x8x2, gemmTile512x9x2, gemmTile512x10x2, gemmTile512x11x2, gemmTile512x12x2,
				},
			},
			packPanel: packRows512x2, packStrips: packStrips512, packTransposed: packTransposed8, prefetch: prefetchLines,
			add: add512, layerNorm: layerNorm512, addLayerNorm: addLayerNorm512, layerNormBackward: layerNormBackward512,
			geluTanh: geluTanh512, geluTanhBackward: geluTanhBackward512, geluErf: geluErf512, geluErfBackward: geluErfBackward512,
			softmax: softmax512, softmaxAgain: softmaxAgain512, softmaxBackward: softmaxBackward512,
			adamW: adamW512, sumSquares: sumSquares512, dropout: dropout512, columnSums: columnSums512, dot: dot512, axpy: axpy512, peak: fmaPeak512,
		}
	}
	return portableSet()
}
