# SPDX-License-Identifier: Apache-2.0
"""Stands in for Keystone's middleware in Tacker's pipeline: everybody is one administrator.

``[filter:authtoken]`` of Tacker's paste configuration is pointed here; the filter behind it, which
is Tacker's own, reads these headers as it would read Keystone's.
"""

PROJECT = "6f1c2f0e-53a4-4f5b-9a53-6d0b7a1f0001"  # Tacker stores it where only a UUID fits
IDENTITY = {
    "HTTP_X_IDENTITY_STATUS": "Confirmed",
    "HTTP_X_AUTH_TOKEN": "no-token",
    "HTTP_X_USER_ID": "6f1c2f0e-53a4-4f5b-9a53-6d0b7a1f0002",
    "HTTP_X_USER_NAME": "tester",
    "HTTP_X_USER_DOMAIN_ID": "default",
    "HTTP_X_PROJECT_ID": PROJECT,
    "HTTP_X_PROJECT_NAME": "tests",
    "HTTP_X_PROJECT_DOMAIN_ID": "default",
    "HTTP_X_ROLES": "admin",
}


def filter_factory(global_conf, **local_conf):
    """For paste: a function that wraps the application behind it."""

    def wrap(application):
        def with_identity(environ, start_response):
            return application({**environ, **IDENTITY}, start_response)

        return with_identity

    return wrap
