"""render.py FOLDER PLATFORM: what rattler-build makes of a recipe, as JSON, one for each variant; it refuses fields that it does not know."""

from __future__ import annotations

import json
import pathlib
import sys

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

folder = pathlib.Path(sys.argv[1])
recipe = Stage0Recipe.from_file(str(folder / "recipe.yaml"))
variants = folder / "variants.yaml"
config = VariantConfig.from_file(str(variants)) if variants.exists() else VariantConfig()
rendered = recipe.render(config, RenderConfig(PlatformConfig(target_platform=sys.argv[2])))
print(json.dumps([variant.recipe.to_dict() for variant in rendered], default=str))
