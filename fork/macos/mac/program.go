package mac

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// programLibraries are what a program with mpsforge's Apple backend is linked with: no more, as a library that a Mac lacks ends the
// program before it begins, and no less.
var programLibraries = append(slices.Collect(maps.Keys(cgoNames)), "/usr/lib/libSystem.B.dylib",
	"/System/Library/Frameworks/MetalPerformanceShaders.framework/Versions/A/MetalPerformanceShaders",
	"/System/Library/Frameworks/MetalPerformanceShadersGraph.framework/Versions/A/MetalPerformanceShadersGraph")

// CheckProgram looks at a program for macOS that was built elsewhere: whether it has its C++, is for the architecture (Go's name) and the
// oldest macOS, is linked with the right libraries, and is signed as it is now: arm64 runs nothing else.
func CheckProgram(data []byte, arch string) error {
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return err
	}
	for _, setting := range info.Settings {
		if setting.Key == "CGO_ENABLED" && setting.Value != "1" {
			return errors.Join(errors.New("it was built without cgo"), checkLinked(data, arch))
		}
	}
	return checkLinked(data, arch)
}

// checkLinked is CheckProgram of a program that need not be Go's.
func checkLinked(data []byte, arch string) error {
	program, err := macho.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	var problems []error
	add := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	if want := map[string]macho.Cpu{"arm64": macho.CpuArm64, "amd64": macho.CpuAmd64}[arch]; program.Cpu != want {
		add(fmt.Errorf("it is for %v, not %v", program.Cpu, want))
	}
	if minimum, _, err := (&Image{file: program}).versions(); err != nil || minimum != oldestMacOS.String() {
		add(errors.Join(err, fmt.Errorf("it is for macOS %q, not %s", minimum, oldestMacOS)))
	}
	linked := librariesOf(program)
	for _, library := range linked {
		if !slices.Contains(programLibraries, library) {
			add(fmt.Errorf("it is linked with %s", library))
		}
	}
	for _, library := range programLibraries {
		if !slices.Contains(linked, library) {
			add(fmt.Errorf("it is not linked with %s", library))
		}
	}
	add(checkSignature(program, data))
	return errors.Join(problems...)
}

// Of a signature, as xnu's osfmk/kern/cs_blobs.h has it. Numbers are big-endian.
const (
	loadSignature      = 0x1d       // LC_CODE_SIGNATURE
	magicSignature     = 0xfade0cc0 // CSMAGIC_EMBEDDED_SIGNATURE
	magicCodeDirectory = 0xfade0c02 // CSMAGIC_CODEDIRECTORY
	adHoc              = 0x2        // CS_ADHOC
	hashSHA256         = 2          // CS_HASHTYPE_SHA256
)

// checkSignature compares each page with the hash that the file's ad hoc signature has of it.
func checkSignature(file *macho.File, data []byte) error {
	return eachPage(file, data, func(i int, page, hash []byte) error {
		if sum := sha256.Sum256(page); !bytes.Equal(sum[:], hash) {
			return fmt.Errorf("page %d is not as it was signed", i)
		}
		return nil
	})
}

// sign writes into a file's ad hoc signature the hashes of its pages as they are now.
func sign(file *macho.File, data []byte) error {
	return eachPage(file, data, func(_ int, page, hash []byte) error {
		sum := sha256.Sum256(page)
		copy(hash, sum[:])
		return nil
	})
}

// eachPage visits the pages that a file's ad hoc signature has hashes of.
func eachPage(file *macho.File, data []byte, visit func(i int, page, hash []byte) error) error {
	for _, load := range file.Loads {
		raw := load.Raw()
		if len(raw) < 16 || file.ByteOrder.Uint32(raw) != loadSignature {
			continue
		}
		start, size := int(file.ByteOrder.Uint32(raw[8:])), int(file.ByteOrder.Uint32(raw[12:]))
		if start+size > len(data) {
			return errors.New("its signature is cut off")
		}
		return eachSignedPage(data[:start], data[start:start+size], visit)
	}
	return errors.New("it is not signed")
}

func eachSignedPage(code, signature []byte, visit func(i int, page, hash []byte) error) error {
	broken := errors.New("its signature is not an ad hoc one")
	number := binary.BigEndian.Uint32
	if len(signature) < 20 || number(signature) != magicSignature || int(number(signature[16:])) > len(signature)-44 {
		return broken
	}
	directory := signature[number(signature[16:]):] // the first blob
	if number(directory) != magicCodeDirectory || number(directory[12:])&adHoc == 0 || directory[37] != hashSHA256 {
		return broken
	}
	hashes, slots, limit := int(number(directory[16:])), int(number(directory[28:])), int(number(directory[32:]))
	if limit != len(code) {
		return fmt.Errorf("%d of its %d bytes are signed", limit, len(code))
	}
	page := 1 << directory[39]
	if slots != (limit+page-1)/page || hashes+slots*sha256.Size > len(directory) {
		return broken
	}
	for i := range slots {
		if err := visit(i, code[i*page:min((i+1)*page, limit)], directory[hashes+i*sha256.Size:][:sha256.Size]); err != nil {
			return err
		}
	}
	return nil
}
