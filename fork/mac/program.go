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
		add(fmt.Errorf("it is for %v, and is to be for %v", program.Cpu, want))
	}
	if minimum, _, err := (&Image{file: program}).versions(); err != nil || minimum != oldestMacOS.String() {
		add(errors.Join(err, fmt.Errorf("it is for macOS %q, and is to be for %s", minimum, oldestMacOS)))
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

// checkSignature compares each page with the hash that the program's ad hoc signature has of it.
func checkSignature(program *macho.File, data []byte) error {
	for _, load := range program.Loads {
		raw := load.Raw()
		if len(raw) < 16 || program.ByteOrder.Uint32(raw) != loadSignature {
			continue
		}
		start, size := int(program.ByteOrder.Uint32(raw[8:])), int(program.ByteOrder.Uint32(raw[12:]))
		if start+size > len(data) {
			return errors.New("its signature is cut off")
		}
		return checkPages(data[:start], data[start:start+size])
	}
	return errors.New("it is not signed")
}

func checkPages(code, signature []byte) error {
	broken := errors.New("its signature has another form than an ad hoc one")
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
		hash := sha256.Sum256(code[i*page : min((i+1)*page, limit)])
		if !bytes.Equal(hash[:], directory[hashes+i*sha256.Size:][:sha256.Size]) {
			return fmt.Errorf("page %d is not as it was signed", i)
		}
	}
	return nil
}
