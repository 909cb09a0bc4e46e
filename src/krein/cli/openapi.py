"""The OpenAPI document of `krein serve`."""

from __future__ import annotations

from typing import Any

from .. import __version__


def document(about: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a service for a model, given the description at `/model`."""
    thing = (
        {"type": "string"}
        if about["takes"] == "text"
        else {"type": "array", "items": {}, "description": "numbers, or lists of numbers"}
    )
    text = {"type": ["string", "null"]}
    number = {"type": ["number", "null"]}
    neighbour = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "label": {"type": "string"},
            "value": {"type": "number", "description": "value of the measure"},
        },
        "required": ["name", "label", "value"],
    }
    prediction = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "label": text,
            "probability": number,
            "runner_up": text,
            "runner_up_probability": number,
            "rejected": {"type": ["boolean", "null"]},
            "probabilities": {
                "type": ["object", "null"],
                "additionalProperties": {"type": "number"},
            },
            "status": {"type": "string", "examples": ["known", "ambiguous", "novel", "unreadable"]},
            "novelty": {
                **number,
                "description": "p-value for none of the classes, if available",
            },
            "evidence": {
                "type": ["array", "null"],
                "items": neighbour,
                "description": "the nearest known objects, if the model keeps them",
            },
            "reason": text,
        },
        "required": ["name", "label", "probability", "probabilities", "status", "reason"],
    }
    many = {
        "type": "object",
        "properties": {"predictions": {"type": "array", "items": prediction}},
        "required": ["predictions"],
    }
    names = {"type": "array", "items": {"type": "string"}}
    objects = {"type": "array", "items": thing, "maxItems": about["limits"]["objects"]}
    asked = {
        "oneOf": [
            {
                "type": "object",
                "properties": {"object": thing, "names": names},
                "required": ["object"],
            },
            {
                "type": "object",
                "properties": {"objects": objects, "names": names},
                "required": ["objects"],
            },
        ]
    }
    failed = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    refused = {
        "400": "the request does not have this form",
        "413": "the request is too large",
        "415": "the request is not JSON",
        "422": "the objects are not of the kind that the model compares",
        "503": "the request took too long",
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": f"krein: {about['model']}", "version": __version__},
        "paths": {
            "/predict": {
                "post": {
                    "summary": "Label one object or many",
                    "requestBody": {"required": True, **_json(asked)},
                    "responses": {
                        "200": {
                            "description": "one prediction, or a list of them",
                            **_json({"oneOf": [prediction, many]}),
                        },
                        **{
                            status: {"description": reason, **_json(failed)}
                            for status, reason in refused.items()
                        },
                    },
                }
            },
            "/model": _get("Describe the model"),
            "/health": _get("Report that the service is running"),
            "/openapi.json": _get("This document"),
        },
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _get(summary: str) -> dict[str, Any]:
    answer = {"description": summary, **_json({"type": "object"})}
    return {"get": {"summary": summary, "responses": {"200": answer}}}
