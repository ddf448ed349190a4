"""`GET /v1/models` and `GET /v1/models/{id}`, in the shape of the protocol the client speaks."""

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import JSONResponse

from zerolayer_worker.server.context import Call, Serving
from zerolayer_worker.server.errors import JsonObject, Protocol


class ModelsRoutes:
    """What is served."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def list(self, request: Request) -> JSONResponse:
        """The one served model as a list."""
        self._serving.check_key(request.headers)
        protocol = Call.of(request.scope).protocol
        data = [self._model(protocol)]
        if protocol is Protocol.OPENAI:
            return JSONResponse({"object": "list", "data": data})
        name = self._serving.engine.info.name
        return JSONResponse({"data": data, "has_more": False, "first_id": name, "last_id": name})

    async def get(self, request: Request) -> JSONResponse:
        """The served model; 404 for any other."""
        self._serving.check_key(request.headers)
        self._serving.check_model(request.path_params["model"])
        return JSONResponse(self._model(Call.of(request.scope).protocol))

    def _model(self, protocol: Protocol) -> JsonObject:
        info = self._serving.engine.info
        if protocol is Protocol.OPENAI:
            return {"id": info.name, "object": "model", "created": info.created, "owned_by": "zerolayer"}
        return {
            "type": "model",
            "id": info.name,
            "display_name": info.name,
            "created_at": datetime.fromtimestamp(info.created, UTC).isoformat().replace("+00:00", "Z"),
            "lifecycle": "active",
            "max_input_tokens": info.max_model_len,
            "max_tokens": info.max_model_len,
        }
