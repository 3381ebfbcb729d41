"""Validates rendered objects against the schemas of Kubernetes, several versions of it, strictly, and
custom resources against their operator's own definitions, whose unknown fields are refused too.

    python validate.py CRD_FOLDER VERSION… < objects.json

The input is a list of {"case": name, "object": manifest}. Prints a JSON list of what is wrong; an
object without a schema is wrong.
"""

import copy
import json
import pathlib
import sys
from functools import lru_cache

import jsonschema
import yaml
from kubernetes_validate import utils
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012


def main():
    folder, versions = pathlib.Path(sys.argv[1]), sys.argv[2:]
    definitions = custom_definitions(folder)
    problems = []
    seen = set()
    for item in json.load(sys.stdin):
        manifest = item["object"]
        key = json.dumps(manifest, sort_keys=True)
        if key in seen:
            continue
        seen.add(key)
        kind = (manifest["apiVersion"], manifest["kind"])
        if kind in definitions:
            check(item, "its operator", definitions[kind], problems)
            continue
        for version in versions:
            try:
                check(item, version, validator(version, *kind), problems)
            except FileNotFoundError:
                problems.append(f"{item['case']}: {kind[0]} {kind[1]}: Kubernetes {version} has none")
    json.dump(problems, sys.stdout)


def check(item, by, by_validator, problems):
    manifest = item["object"]
    for error in by_validator.iter_errors(manifest):
        where = "/".join(str(step) for step in error.absolute_path)
        name = manifest["metadata"]["name"]
        problems.append(f"{item['case']}: {manifest['kind']} {name} by {by}: {where}: {error.message[:300]}")


@lru_cache(maxsize=None)
def definitions_of(version):
    folder = f"v{version}.0-local-strict"
    content = utils.schema_contents(f"kubernetes-json-schema/{folder}/_definitions.json", version)
    return Resource.from_contents(content, default_specification=DRAFT202012)


@lru_cache(maxsize=None)
def validator(version, api_version, kind):
    group, _, number = api_version.rpartition("/")
    short = f"{group.split('.')[0]}-{number}" if group else number
    folder = f"v{version}.0-local-strict"
    schema = utils.schema_contents(f"kubernetes-json-schema/{folder}/{kind.lower()}-{short}.json", version)
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    registry = definitions_of(version) @ (resource @ Registry())
    return jsonschema.validators.Draft202012Validator(schema, registry=registry)


def custom_definitions(folder):
    found = {}
    for file in sorted(folder.glob("*.yaml")):
        definition = yaml.safe_load(file.read_text())["spec"]
        for version in definition["versions"]:
            schema = closed(copy.deepcopy(version["schema"]["openAPIV3Schema"]))
            schema["properties"]["metadata"] = {"type": "object"}
            kind = (f"{definition['group']}/{version['name']}", definition["names"]["kind"])
            found[kind] = jsonschema.validators.Draft202012Validator(schema)
    return found


def closed(schema):
    """The API server drops unknown fields in silence; here they are errors."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: closed(value) for key, value in schema.items()}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if schema.get("type") == "object" and "properties" in schema and not is_open:
        schema["additionalProperties"] = False
    return integer_or_string(schema)


def integer_or_string(schema):
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    return schema


main()
