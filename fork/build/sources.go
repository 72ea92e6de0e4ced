package build

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sourceFolders hold what a host build compiles of PyTorch, by path in the checkout.
var sourceFolders = []string{
	"aten/src/ATen/mps",
	"aten/src/ATen/native/mps",
	"aten/src/ATen/native/mps/operations",
}

// Excluded is a source file of the backend that a host build does not compile.
type Excluded struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Reasons for leaving a source file out.
const (
	notNeeded = "not part of the operations that host builds run"
	viaGlue   = "compiled through native/torch, which satisfies its platform guard"
	notYet    = "newer than this PyTorch"
	// NotThere is of a tree that is only a part of PyTorch's.
	NotThere = "not in the checkout"
)

// wantedOperations are the operations files that a host build compiles; the others are left out to keep it quick.
var wantedOperations = []string{
	"Activation.mm", "ActivationKernel.mm", "Attention.mm", "BinaryKernel.mm", "BinaryOps.mm", "ConstantOps.mm", "Convolution.mm", "Copy.mm", "Distributions.mm", "Indexing.mm", "Linear.mm", "LinearAlgebra.mm",
	"Normalization.mm", "PointwiseOps.mm", "ReduceOps.mm", "RenormKernel.mm", "RMSNorm.mm", "Scalar.mm", "Shape.mm", "SoftMax.mm", "TensorCompare.mm", "UnaryKernel.mm", "UnaryOps.mm", "View.mm",
}

// newOperations are those of them that PyTorch 2.6.0 does not have and v2.9.1 has.
var newOperations = []string{"ActivationKernel.mm", "RMSNorm.mm"}

// backendSources lists the files to compile, and those left out with their reasons, by path in the checkout.
func backendSources(checkout string) (compiled []string, excluded []Excluded, err error) {
	for _, folder := range sourceFolders {
		entries, err := os.ReadDir(filepath.Join(checkout, folder))
		if err != nil {
			return nil, nil, fmt.Errorf("sources of the MPS backend: %w", err)
		}
		for _, entry := range entries {
			name, path := entry.Name(), folder+"/"+entry.Name()
			if extension := filepath.Ext(name); extension != ".mm" && extension != ".cpp" {
				continue
			}
			if reason := reasonToExclude(path); reason != "" {
				excluded = append(excluded, Excluded{path, reason})
				continue
			}
			compiled = append(compiled, path)
		}
	}
	operations := sourceFolders[len(sourceFolders)-1]
	missing := slices.DeleteFunc(slices.Clone(wantedOperations), func(name string) bool { return slices.Contains(compiled, operations+"/"+name) })
	reason := notYet
	if slices.ContainsFunc(missing, func(name string) bool { return !slices.Contains(newOperations, name) }) {
		reason = NotThere
	}
	for _, name := range missing {
		excluded = append(excluded, Excluded{operations + "/" + name, reason})
	}
	if len(compiled) == 0 {
		return nil, nil, fmt.Errorf("%s holds no sources of the MPS backend in %s", checkout, strings.Join(sourceFolders, ", "))
	}
	return compiled, excluded, nil
}

func reasonToExclude(path string) string {
	if path == "aten/src/ATen/mps/EmptyTensor.cpp" {
		return viaGlue
	}
	if filepath.Base(filepath.Dir(path)) == "operations" && !slices.Contains(wantedOperations, filepath.Base(path)) {
		return notNeeded
	}
	return ""
}
