package pytests

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/macos/wheels"
	"mpsforge/reports"
)

// webPackages are FastAPI, uvicorn, and what they need beside the packages that a host build's Python has.
var webPackages = []wheels.Wheel{
	{URL: "https://files.pythonhosted.org/packages/50/b3/b51f09c2ba432a576fe63758bddc81f78f0c6309d9e5c10d194313bf021e/fastapi-0.115.12-py3-none-any.whl", SHA256: "e94613d6c05e27be7ffebdd6ea5f388112e5e430c8f7d6494a9d1d88d43e814d"},
	{URL: "https://files.pythonhosted.org/packages/8b/0c/9d30a4ebeb6db2b25a841afbb80f6ef9a854fc3b41be131d249a977b4959/starlette-0.46.2-py3-none-any.whl", SHA256: "595633ce89f8ffa71a015caed34a5b2dc1c0cdb3f0f1fbd1e69339cf2abeec35"},
	{URL: "https://files.pythonhosted.org/packages/a1/ee/48ca1a7c89ffec8b6a0c5d02b89c305671d5ffd8d3c94acf8b8c408575bb/anyio-4.9.0-py3-none-any.whl",
		SHA256: "9f76d541cad6e36af7beb62e978876f3b41e3e04f2c1fbf0884604c0a9c4d93c"},
	{URL: "https://files.pythonhosted.org/packages/e9/44/75a9c9421471a6c4805dbf2356f7c181a29c1879239abab1ea2cc8f38b40/sniffio-1.3.1-py3-none-any.whl",
		SHA256: "2f6da418d1f1e0fddd844478f41680e794e6051915791a034ff65e5f100525a2"},
	{URL: "https://files.pythonhosted.org/packages/e7/12/46b65f3534d099349e38ef6ec98b1a5a81f42536d17e0ba382c28c67ba67/pydantic-2.11.4-py3-none-any.whl",
		SHA256: "d9615eaa9ac5a063471da949c8fc16376a84afb5024688b3ff885693506764eb"},
	{URL: "https://files.pythonhosted.org/packages/78/b6/6307fbef88d9b5ee7421e68d78a9f162e0da4900bc5f5793f6d3d0e34fb8/annotated_types-0.7.0-py3-none-any.whl", SHA256: "1f02e8b43a8fbbc3f3e0d4f0f4bfc8131bcb4eebe8849b8e5c773f3a1c582a53"},
	{URL: "https://files.pythonhosted.org/packages/31/08/aa4fdfb71f7de5176385bd9e90852eaf6b5d622735020ad600f2bab54385/typing_inspection-0.4.0-py3-none-any.whl", SHA256: "50e72559fcd2a6367a19f7a7e610e6afcb9fac940c650290eed893d61386832f"},
	{URL: "https://files.pythonhosted.org/packages/b1/4b/4cef6ce21a2aaca9d852a6e84ef4f135d99fcd74fa75105e2fc0c8308acd/uvicorn-0.34.2-py3-none-any.whl",
		SHA256: "deb49af569084536d269fe0a6d67e3754f104cf03aba7c11c40f01aadf33c403"},
	{URL: "https://files.pythonhosted.org/packages/7e/d4/7ebdbd03970677812aac39c869717059dbb71a4cfc033ca6e5221787892c/click-8.1.8-py3-none-any.whl",
		SHA256: "63c132bbbed01578a06712a2d1f497bb62d9c1c0d329b7903a866228027263b2"},
	{URL: "https://files.pythonhosted.org/packages/04/4b/29cac41a4d98d144bf5f6d33995617b185d14b22401f75ca86f384e87ff1/h11-0.16.0-py3-none-any.whl",
		SHA256: "63cf8bbe7522de3bf65932fda1d9c2772064ffb3dae62d55932da54b31cb6c86"},
}

// pydanticCore is compiled: for Debian trixie's Python, by the architecture as Go names it.
var pydanticCore = map[string]wheels.Wheel{
	"amd64": {URL: "https://files.pythonhosted.org/packages/eb/3c/f4abd740877a35abade05e437245b192f9d0ffb48bbbbd708df33d3cda37/pydantic_core-2.33.2-cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", SHA256: "9fdac5d6ffa1b5a83bca06ffe7583f5576555e6c8b3a91fbd25ea7780f825f7d"},
	"arm64": {URL: "https://files.pythonhosted.org/packages/6f/5e/a0a7b8885c98889a18b6e376f344da1ef323d270b44edf8174d6bce4d622/pydantic_core-2.33.2-cp313-cp313-manylinux_2_17_aarch64.manylinux2014_aarch64.whl", SHA256: "0a9f2c9dd19656823cb8250b0724ee9c60a82f3cdf68a080979d13092a3b0fef"},
}

// WithPackages gets the packages that some tests need and that a host build's Python does not have, and gives the tests. Those whose
// packages cannot be had are left out, and the report says why. On another Python such a test uses what is installed, or skips itself.
func (r *Runner) WithPackages(ctx context.Context, tests []Test, patched *Subject) ([]Test, error) {
	needs := func(t Test) bool { return t.packages }
	if patched.wanted.library == "" || !slices.ContainsFunc(tests, needs) {
		return tests, nil
	}
	var folders []string
	for _, wheel := range append(slices.Clone(webPackages), pydanticCore[runtime.GOARCH]) {
		folder, err := wheel.Get(ctx, r.Env.Cache, []string{""}, r.Env.Sink)
		if errors.Is(err, builds.ErrEnvironment) {
			for _, t := range tests {
				if needs(t) {
					r.Stage.Add(reports.Check{Name: t.Name, Subject: patched.Name, Verdict: reports.Skipped, Detail: err.Error()})
				}
			}
			return slices.DeleteFunc(slices.Clone(tests), needs), nil
		}
		if err != nil {
			return nil, err
		}
		folders = append(folders, folder)
	}
	r.packages = strings.Join(folders, string(os.PathListSeparator))
	return tests, nil
}
