"""From the models in `tandem_api` to every document that is generated from them.

Pure but for the reading of the committed PodTemplateSpec schema: each module returns text or data, `generate_command`
alone writes files.
"""
