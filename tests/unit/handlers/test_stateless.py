"""kopf is given nothing to keep: no annotation, and no copy of an object."""

import kopf

from tandem_operator.handlers.stateless import NoDiffBase, NoProgress


def test_nothing_of_an_object_is_compared_and_nothing_is_written_to_it() -> None:
    body, patch, essence = kopf.Body({"metadata": {"name": "chat"}, "spec": {"a": 1}}), kopf.Patch(), kopf.BodyEssence()
    base, progress = NoDiffBase(), NoProgress()
    assert base.build(body=body) == {}
    base.store(body=body, patch=patch, essence=essence)
    progress.store(key="handler", record=kopf.ProgressRecord(), body=body, patch=patch)
    progress.touch(body=body, patch=patch, value="now")
    progress.purge(key="handler", body=body, patch=patch)
    assert patch == {}
    assert base.fetch(body=body) is None
    assert progress.fetch(key="handler", body=body) is None
    assert progress.clear(essence=essence) is essence
